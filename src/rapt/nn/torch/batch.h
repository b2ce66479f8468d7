// Between the shapes and masks of torch.nn and packed rows.
#pragma once

#include "rapt/tensor/score_bias.h"

namespace rapt::nn::torch {

// How a call lays its sequences out: (T, N, C), (N, T, C), or (T, C) without a batch.
struct BatchLayout {
  bool batched = true;
  bool batch_first = false;
};

// N sentences of T tokens each, with positions from `first` on.
Rows equal_rows(int64_t N, int64_t T, int64_t first);

// A sequence argument as rows: N sentences of T tokens.
struct Sequence {
  Tensor rows;  // (N T, C)
  int64_t N = 0, T = 0;

  Rows sentences(int64_t first = 0) const { return equal_rows(N, T, first); }
};

// `name` is the argument's. Throws Error, as `who`, for another rank, width or type.
Sequence as_rows(const char* who, const char* name, const Tensor& x, const BatchLayout& layout,
                 int64_t width, DType dtype);

// rows (N T, C), the result of a call, in the shape of the argument that `like` came from.
Tensor as_sequence(const Tensor& rows, const Sequence& like, const BatchLayout& layout);

// Whether `x` has a batch: 3 axes, not 2. Throws Error, as `who`, for others.
bool is_batched(const char* who, const char* name, const Tensor& x);

// The masks of one attention, by the names of the arguments that they come from.
struct MaskArguments {
  const char* who = "";
  const char* attn_mask_name = "attn_mask";
  Tensor attn_mask = {};
  const char* key_padding_mask_name = "key_padding_mask";
  Tensor key_padding_mask = {};
  const char* is_causal_name = "is_causal";
  bool is_causal = false;
};

struct AttentionSizes {
  int64_t N = 0, H = 0, L = 0, S = 0;
  bool batched = true;
  DType dtype = DType::f32;  // of float masks
  int64_t added_keys = 0;    // behind the S keys of every sentence, seen by every query
};

// What the masks say together. Causality is by position: with L other than S the positions of the
// queries begin at query_position(), those of the keys at key_position(), so that the last query
// stands beside the last key. Throws Error for shapes and types that do not fit, and where the mask
// contradicts is_causal.
ScoreTerms score_terms(const MaskArguments& arguments, const AttentionSizes& sizes);
inline int64_t query_position(int64_t L, int64_t S) { return S > L ? S - L : 0; }
inline int64_t key_position(int64_t L, int64_t S) { return L > S ? L - S : 0; }

// Weights (N, H, L, S + added keys) as a caller wants them: averaged over heads or not, without a
// batch (H, L, S) or (L, S). Weights of no sentences, which do not know their lengths, get them
// here.
Tensor shaped_weights(const Tensor& weights, const AttentionSizes& sizes, bool average);

}  // namespace rapt::nn::torch
