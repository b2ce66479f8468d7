// Scaled dot-product attention, Vaswani et al. 2017, section 3.2.1, for all heads of a packed batch
// at once.
//
// Sizes: q (Nq, H, Dk), k (Nk, Hk, Dk), v (Nk, Hk, Dv); each may be a view of columns of a wider
// product. Or with heads first and without gaps: q (B, H, Tq, Dk), k (B, Hk, Tk, Dk), v (B, Hk, Tk,
// Dv), with Rows of B sentences of equal lengths. Hk divides H: query head h uses key head
// h / (H / Hk) (grouped heads, Ainslie et al. 2023).
#pragma once

#include <memory>
#include <optional>

#include "rapt/tensor/mask.h"
#include "rapt/tensor/pass.h"
#include "rapt/tensor/score_bias.h"
#include "rapt/tensor/tape.h"

namespace rapt {

struct AttentionOptions {
  std::optional<double> scale = {};  // of the scores; unset: 1 / sqrt(Dk)
  kernels::Dropout dropout = {};     // of the weights
  ScoreBias bias = {};               // added to the scores, each term of the type of q, or f32
  // Whether long sentences may run on the CPU's bf16 tiles: in f32 as exact, in bf16 with weights
  // rounded to it, and with other bits than a query that is computed alone. Where gradients are
  // wanted they always may.
  bool split = false;
  int64_t key_tile = 0, query_tile = 0;  // of the kernel; 0: its own
};

// softmax(scale q k^T + bias) v -> (Nq, H, Dv) or (B, H, Tq, Dv): each sentence of `queries`
// attends within the sentence of `keys` with the same index. A query that may see no key gets
// zeros. Throws Error where shapes do not fit.
Tensor attention(const Tensor& q, const Rows& queries, const Tensor& k, const Tensor& v,
                 const Rows& keys, const Mask& mask = {}, const AttentionOptions& options = {});

struct AttentionResult {
  Tensor context;  // (Nq, H, Dv) or (B, H, Tq, Dv)
  Tensor weights;  // (B, H, longest Tq, longest Tk), before dropout; zero where a sentence is
                   // shorter
};
// The same with the weights of all heads: those that the context was made with. Both are
// differentiated, each for itself.
AttentionResult attention_with_weights(const Tensor& q, const Rows& queries, const Tensor& k,
                                       const Tensor& v, const Rows& keys, const Mask& mask = {},
                                       const AttentionOptions& options = {});

// The mean of weights over heads: (B, H, Tq, Tk) -> (B, Tq, Tk), the sum in the order of the heads
// divided by H. Throws Error for another rank or no heads.
Tensor mean_heads(const Tensor& weights);

}  // namespace rapt
