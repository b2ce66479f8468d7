// Attention by its formula with plain loops in f64, and random problems for it.
#pragma once

#include <functional>

#include "rapt/ops/attention.h"
#include "tests/testing/tensors.h"

namespace rapt::testing {

// Which keys a query sees, all counted within sentence b.
using Sees = std::function<bool(int64_t b, int64_t h, int64_t i, int64_t j)>;
// What is added to a score before the softmax.
using AddedScore = std::function<double(int64_t b, int64_t h, int64_t i, int64_t j)>;

struct PlainAttention {
  std::vector<double> context;               // (Nq, H, Dv)
  std::vector<std::vector<double>> weights;  // of (b, h): (Tq, Tk) of that sentence
};

inline PlainAttention plain_attention(const Tensor& q, const Rows& queries, const Tensor& k,
                                      const Tensor& v, const Rows& keys, const Sees& sees,
                                      const AddedScore& added = {}, double scale = 0) {
  const int64_t H = q.dim(1), Dk = q.dim(2), Dv = v.dim(2);
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(Dk));
  const std::vector<double> qs = values_of(q), ks = values_of(k), vs = values_of(v);
  PlainAttention result;
  result.context.assign(static_cast<size_t>(q.dim(0) * H * Dv), 0);
  for (int64_t b = 0; b < queries.sentences(); ++b) {
    const auto &Q = queries[b], &K = keys[b];
    for (int64_t h = 0; h < H; ++h) {
      std::vector<double>& w =
          result.weights.emplace_back(static_cast<size_t>(Q.count * K.count), 0.0);
      for (int64_t i = 0; i < Q.count; ++i) {
        double sum = 0;
        for (int64_t j = 0; j < K.count; ++j) {
          if (!sees(b, h, i, j)) continue;
          double score = 0;
          for (int64_t c = 0; c < Dk; ++c) {
            score += qs[((Q.row + i) * H + h) * Dk + c] * ks[((K.row + j) * H + h) * Dk + c];
          }
          score = score * scale + (added ? added(b, h, i, j) : 0);
          sum += w[i * K.count + j] = std::exp(score);
        }
        for (int64_t j = 0; j < K.count && sum > 0; ++j) {
          w[i * K.count + j] /= sum;
          for (int64_t c = 0; c < Dv; ++c) {
            result.context[((Q.row + i) * H + h) * Dv + c] +=
                w[i * K.count + j] * vs[((K.row + j) * H + h) * Dv + c];
          }
        }
      }
    }
  }
  return result;
}

// A batch for self- or cross-attention.
struct AttentionProblem {
  AttentionProblem(const Rows& q_rows, const Rows& k_rows, int64_t heads = 2, int64_t Dk = 3,
                   int64_t Dv = 4, DType dtype = DType::f64)
      : queries(q_rows),
        keys(k_rows),
        H(heads),
        q(random_tensor({q_rows.tokens(), heads, Dk}, 11, dtype, -2, 2)),
        k(random_tensor({k_rows.tokens(), heads, Dk}, 12, dtype, -2, 2)),
        v(random_tensor({k_rows.tokens(), heads, Dv}, 13, dtype)) {}

  Tensor run(const Mask& mask = {}, const AttentionOptions& options = {}) const {
    return attention(q, queries, k, v, keys, mask, options);
  }
  AttentionResult run_with_weights(const Mask& mask = {},
                                   const AttentionOptions& options = {}) const {
    return attention_with_weights(q, queries, k, v, keys, mask, options);
  }
  Tensor formula(const Sees& sees, const AddedScore& added = {}, double scale = 0) const {
    return Tensor::from(plain_attention(q, queries, k, v, keys, sees, added, scale).context,
                        {q.dim(0), H, v.dim(2)});
  }

  Rows queries, keys;
  int64_t H;
  Tensor q, k, v;
};

// Small tiles, so that a few tokens make many of them.
inline AttentionOptions small_tiles(AttentionOptions options = {}) {
  options.key_tile = 4;
  options.query_tile = 2;
  return options;
}

}  // namespace rapt::testing
