// A whole small language model made of ops: embedding, causal attention, feed-forward, loss.
#pragma once

#include "rapt/ops/attention.h"
#include "rapt/ops/cross_entropy.h"
#include "rapt/ops/elementwise.h"
#include "rapt/ops/embedding.h"
#include "rapt/ops/layer_norm.h"
#include "rapt/ops/linear.h"
#include "tests/testing/tensors.h"

namespace rapt::testing {

struct SmallBlock {
  explicit SmallBlock(DType type, int64_t width = 64, int64_t vocabulary = 300)
      : dtype(type), C(width), V(vocabulary) {}

  // ids (N) -> logits (N, V)
  Tensor forward(const Tensor& ids, const Rows& rows, const Mask& mask, const Pass& pass,
                 double probability) const {
    return finish(
        embed(ids, rows, pass, probability),
        [&](const Tensor& x) {
          const Tensor product = project(x, pass);
          return attention(head(product, 0), rows, head(product, 1), head(product, 2), rows, mask,
                           {.dropout = pass.scope("weights").dropout(probability)});
        },
        rows, pass, probability);
  }

  // The logits of one more token of one sentence; caches (capacity, H, D) take its key and value.
  Tensor step(int32_t id, int64_t position, Tensor keys, Tensor values) const {
    const Pass pass = Pass::inference();
    const Rows row({{.row = 0, .count = 1, .position = position, .sample = 0}});
    return finish(
        embed(ids({id}), row, pass, 0),
        [&](const Tensor& x) {
          const Tensor product = project(x, pass);
          copy(head(product, 1), keys.rows(position, 1));
          copy(head(product, 2), values.rows(position, 1));
          return attention(head(product, 0), row, keys, values, Rows::packed({position + 1}),
                           Mask::causal());
        },
        row, pass, 0);
  }

  std::vector<NamedParameter> parameters() const {
    std::vector<NamedParameter> result;
    for (const Parameter& p : {table, gain, shift, qkv, qkv_bias, out, up, down, last_gain}) {
      result.push_back({std::to_string(result.size()), p, 0, p.shape()[0]});
    }
    return result;
  }

  DType dtype;
  int64_t C, V, H = 4;
  Parameter table = made({V, C}, 1), gain = made({C}, 2), shift = made({C}, 3);
  Parameter qkv = made({3 * C, C}, 4), qkv_bias = made({3 * C}, 5), out = made({C, C}, 6);
  Parameter up = made({2 * C, C}, 7), down = made({C, 2 * C}, 8), last_gain = made({C}, 9);
  Tensor positions = random_tensor({200, C}, 10, dtype);

 private:
  Parameter made(const Shape& shape, uint64_t seed) const {
    const double size = shape.rank() == 1 ? 1 : 1 / std::sqrt(static_cast<double>(shape[1]));
    return Parameter(random_tensor(shape, seed, dtype, -size, size));
  }
  Tensor embed(const Tensor& ids, const Rows& rows, const Pass& pass, double probability) const {
    return embedding(ids, pass.use(table), 2, positions, rows,
                     pass.scope("embedding").dropout(probability));
  }
  Tensor project(const Tensor& x, const Pass& pass) const {
    return linear(x, pass.use(qkv), pass.use(qkv_bias));
  }
  Tensor head(const Tensor& product, int64_t i) const {
    return product.columns(i * C, C).reshape({product.dim(0), H, C / H});
  }
  void copy(const Tensor& from, Tensor to) const {
    const Tensor source = from.contiguous_copy();
    std::memcpy(to.raw(), source.raw(), static_cast<size_t>(C * size_of(dtype)));
  }
  template <class Attend>
  Tensor finish(const Tensor& x, const Attend& attend, const Rows& rows, const Pass& pass,
                double probability) const {
    const Tensor context = attend(x).reshape({x.dim(0), C});
    const Tensor h = residual_layer_norm(linear(context, pass.use(out)), x, rows,
                                         pass.scope("attention").dropout(probability),
                                         pass.use(gain), pass.use(shift), 1e-5);
    Tensor hidden = relu(linear(h, pass.use(up)));
    hidden = dropout(std::move(hidden), rows, pass.scope("hidden").dropout(probability));
    const Tensor y =
        layer_norm(add(h, linear(hidden, pass.use(down))), pass.use(last_gain), {}, 1e-5);
    return linear(y, pass.use(table));  // tied
  }
};

// Some ids below `vocabulary`.
inline std::vector<int32_t> some_ids(int64_t count, int64_t vocabulary, uint64_t seed) {
  Rng rng(seed);
  std::vector<int32_t> result(static_cast<size_t>(count));
  for (int32_t& id : result) id = static_cast<int32_t>(rng.below(vocabulary));
  return result;
}

}  // namespace rapt::testing
