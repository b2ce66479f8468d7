// Small encoder-decoders and batches for tests.
#pragma once

#include <cstring>
#include <vector>

#include "rapt/models/encoder_decoder.h"
#include "tests/testing/tensors.h"

namespace rapt::testing {

inline models::EncoderDecoderConfig small_config(const std::string& layout) {
  models::EncoderDecoderConfig c = layout == "hand_built"
                                       ? models::EncoderDecoderConfig::hand_built(9, 7)
                                       : models::EncoderDecoderConfig::torch(9, 7);
  c.layout = layout;
  c.d_model = 6;
  c.nhead = 3;
  c.d_qk = layout == "torch" ? 0 : 5;
  c.d_v = layout == "torch" ? 0 : 4;
  c.dim_feedforward = 11;
  c.num_encoder_layers = 2;
  c.num_decoder_layers = 2;
  c.max_len = 12;
  c.start_id = 1;
  c.end_id = 2;
  return c;
}

inline models::EncoderDecoder make_model(const models::EncoderDecoderConfig& config, DType dtype,
                                         uint64_t seed = 1) {
  Rng rng(seed);
  return models::EncoderDecoder(config, nn::Init{.rng = &rng, .dtype = dtype});
}

// A packed batch with an empty source and sentences of several lengths.
struct SmallBatch {
  Tensor source, target, labels;
  Rows source_rows, target_rows;
};

inline SmallBatch small_batch() {
  return {ids({3, 4, 5, 6, 8, 3, 4, 4}), ids({1, 3, 4, 1, 1, 5, 6, 3, 5}),
          ids({3, 4, 2, 2, 5, 6, 3, 5, 2}), Rows::packed({4, 1, 3}), Rows::packed({3, 1, 5})};
}

// Every parameter's gradient, by the name of its first range. (A stacked parameter is compared as a
// whole: the gradient of an attention's key bias alone is zero but for rounding.)
inline std::vector<std::pair<std::string, Tensor>> all_gradients(const nn::Module& module,
                                                                 Gradients& gradients) {
  std::vector<std::pair<std::string, Tensor>> all;
  for (const NamedParameter& p : nn::parameters(module)) {
    if (p.begin > 0) continue;
    const Tensor g = gradients.of(p.parameter);
    all.emplace_back(p.name, g.defined() ? g.contiguous_copy() : Tensor());
  }
  return all;
}

// Rows [begin[i], begin[i] + count[i]) of x, one behind the other.
inline Tensor take_rows(const Tensor& x, const std::vector<std::pair<int64_t, int64_t>>& ranges) {
  int64_t rows = 0;
  for (const auto& [begin, count] : ranges) rows += count;
  std::vector<int64_t> sizes(x.shape().sizes().begin(), x.shape().sizes().end());
  sizes[0] = rows;
  Tensor taken = Tensor::empty(Shape(sizes), x.dtype());
  char* to = static_cast<char*>(taken.raw());
  for (const auto& [begin, count] : ranges) {
    const Tensor part = x.rows(begin, count).contiguous_copy();
    const size_t bytes = static_cast<size_t>(part.numel() * size_of(part.dtype()));
    std::memcpy(to, part.raw(), bytes);
    to += bytes;
  }
  return taken;
}

// (B, T) matrices with padding at the end, and where the real tokens are in them.
struct Padded {
  Tensor ids;
  Rows rows;
  Mask mask;
  std::vector<std::pair<int64_t, int64_t>> real;
};

inline Padded padded(const Tensor& ids, const Rows& rows) {
  const int64_t B = rows.sentences(), T = rows.longest() + 1;
  std::vector<int32_t> matrix(static_cast<size_t>(B * T), 0);
  std::vector<uint8_t> keep(matrix.size(), 0);
  Padded p;
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t t = 0; t < rows[b].count; ++t) {
      matrix[static_cast<size_t>(b * T + t)] = ids.data<int32_t>()[rows[b].row + t];
      keep[static_cast<size_t>(b * T + t)] = 1;
    }
    p.real.emplace_back(b * T, rows[b].count);
  }
  p.ids = Tensor::from(matrix, {B * T});
  p.rows = Rows::equal(B, T);
  p.mask = Mask::keep(Tensor::from(keep, {B * T}));
  return p;
}

}  // namespace rapt::testing
