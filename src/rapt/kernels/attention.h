// Tiled exact attention, forward and backward: softmax(scale q k^T + bias) v within the sentences
// of a packed batch, without a Tq x Tk matrix (Dao et al. 2022, FlashAttention; Milakov and
// Gimelshein 2018).
//
// Sizes: q (Nq, H, Dk), k (Nk, Hk, Dk), v (Nk, Hk, Dv), out (Nq, H, Dv), their heads side by side
// or each for itself (HeadStrides). Query head h uses key head h / (H / Hk). Sentence b of the
// queries attends to sentence b of the keys. Key tiles have one size and are counted from the
// sentence's first key, query rows do not influence each other: a row's bits do not depend on batch
// mates, nor on keys it may not see.
//
// A query that may see no key gets zeros: output, weights and gradients.
//
// In bf16 operands and results are bf16 alone: all in between is f32, and so are bias, sums and
// weights.
#pragma once

#include <cstdint>
#include <span>

#include "rapt/kernels/types.h"

namespace rapt::kernels {

// One matrix of permissions: nonzero means that the query may see the key. For sentence b, head h,
// query i and key j (counted within the sentence): keep[b * stride_b + h * stride_h + i * stride_q
// + j]. With `offset_by_key_row`, b * stride_b is replaced by the row of the sentence's first key
// (a mask over packed keys).
struct KeepMatrix {
  const uint8_t* keep = nullptr;
  int64_t stride_b = 0, stride_h = 0, stride_q = 0;
  bool offset_by_key_row = false;
};

// A query at position p sees a key at position r if all that is set allows it.
struct AttentionMask {
  bool causal = false;  // r <= p
  int64_t window = -1;  // |p - r| <= window; negative: no bound
  std::span<const KeepMatrix> matrices;
};

// A tile of scores: queries [q0, q0 + rows) x keys [k0, k0 + cols) of sentence b and head h.
struct ScoreTile {
  int64_t b, h, q0, k0, rows, cols;
};

// What is added to the scores. Called once a tile; different tiles may be asked for at once.
template <class T>
class ScoreBias {
 public:
  virtual ~ScoreBias() = default;
  // scores[i * ld + j] += the bias of the tile's element (i, j).
  virtual void add(const ScoreTile& tile, T* scores, int64_t ld) const = 0;
  // Takes the gradient of the scores of a tile. Only tiles of different `gradient_group`s come at
  // once.
  virtual void take_gradient(const ScoreTile& tile, const T* dscores, int64_t ld) = 0;
  // Sentences and heads whose gradients meet in the same place have the same group; -1 where no
  // gradient is wanted. Groups are numbered from 0.
  virtual int64_t gradient_group(int64_t b, int64_t h) const = 0;
};

// Where the heads of an operand lie: token i of a sentence, head h, is at
// sentence.row * start + h * head + i * row.
struct HeadStrides {
  int64_t row = 0, head = 0, start = 0;

  // (N, H, D) with rows `ld` apart.
  static HeadStrides packed(int64_t ld, int64_t D) { return {ld, D, ld}; }
  // (B, H, T, D); the segments are those of B sentences of T rows.
  static HeadStrides heads_first(int64_t H, int64_t T, int64_t D) { return {D, T * D, H * D}; }

  int64_t at(const Segment& sentence, int64_t h, int64_t i = 0) const {
    return sentence.row * start + h * head + i * row;
  }
};

template <class T>
struct AttentionArgs {
  const T* q = nullptr;
  const T* k = nullptr;
  const T* v = nullptr;
  HeadStrides q_at, k_at, v_at;
  std::span<const Segment> queries, keys;  // one a sentence, equally many
  int64_t H = 0, Dk = 0, Dv = 0;
  int64_t Hk = 0;  // heads of keys and values, of which H is a multiple; 0: H
  double scale = 1;
  AttentionMask mask;
  ScoreBias<Precise<T>>* bias = nullptr;
  // Element (query, key) of head h: philox_element(philox_key_of_head(key, h), sample and position
  // of the query, position of the key as channel).
  Dropout dropout;
  // Whether products may run on bf16 tiles where the CPU has them (x86/attention_tiles.h), in
  // sentences of many queries and keys: in f32 as exact, in bf16 from weights and their gradients
  // rounded to it; other bits than where a few queries are computed alone.
  bool split = false;
  int64_t key_tile = 0;  // 0: the default; others are for tests
  int64_t query_tile = 0;

  int64_t key_heads() const { return Hk == 0 ? H : Hk; }
  int64_t key_head(int64_t h) const { return h / (H / key_heads()); }
};

// What a query's weights were made with: 2^(score log2(e) - most) / total. Apart, since their
// logarithms' sum would lose the digits of `total` where scores are large.
template <class T>
struct SoftmaxSum {
  T most;   // the largest score times log2(e); minus infinity where no key was seen,
  T total;  // and 0 then
};

// out (Nq, H, Dv); sums (Nq, H), which the backward needs, may be null.
void attention(const AttentionArgs<float>& args, float* out, const HeadStrides& out_at,
               SoftmaxSum<float>* sums);
void attention(const AttentionArgs<double>& args, double* out, const HeadStrides& out_at,
               SoftmaxSum<double>* sums);
void attention(const AttentionArgs<bf16>& args, bf16* out, const HeadStrides& out_at,
               SoftmaxSum<float>* sums);

// dq, dk, dv from d_out; out and sums are the forward's. Each gradient is written, or added to
// what is there if its flag says so; null gradients are not computed. The bias's gradient goes to
// args.bias.
//
// Or from d_weights, the gradient of the weights before dropout as attention_weights() hands them
// out, if that is set: then those are `weights`, nothing else of the forward is read, and dv must
// be null.
template <class T>
struct AttentionGrads {
  const T* out = nullptr;
  const T* d_out = nullptr;
  const SoftmaxSum<Precise<T>>* sums = nullptr;
  HeadStrides out_at, d_out_at;
  T* dq = nullptr;
  T* dk = nullptr;
  T* dv = nullptr;
  HeadStrides dq_at, dk_at, dv_at;
  bool add_dq = false, add_dk = false, add_dv = false;
  const Precise<T>* weights = nullptr;
  const Precise<T>* d_weights = nullptr;
  int64_t ldw = 0, weights_of_head = 0;  // from a query to the next, from (b, h) to (b, h + 1)
};
void attention_grad(const AttentionArgs<float>& args, const AttentionGrads<float>& grads);
void attention_grad(const AttentionArgs<double>& args, const AttentionGrads<double>& grads);
void attention_grad(const AttentionArgs<bf16>& args, const AttentionGrads<bf16>& grads);

// The weights of head h of sentence b (without dropout), computed as the forward computes them from
// its sums: weights[i * ldw + j] for query i and key j.
void attention_weights(const AttentionArgs<float>& args, const SoftmaxSum<float>* sums, int64_t b,
                       int64_t h, float* weights, int64_t ldw);
void attention_weights(const AttentionArgs<double>& args, const SoftmaxSum<double>* sums, int64_t b,
                       int64_t h, double* weights, int64_t ldw);
void attention_weights(const AttentionArgs<bf16>& args, const SoftmaxSum<float>* sums, int64_t b,
                       int64_t h, float* weights, int64_t ldw);

}  // namespace rapt::kernels
