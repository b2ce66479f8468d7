#include "rapt/nn/torch/scaled_dot_product_attention.h"

#include <cmath>
#include <string>
#include <vector>

#include "rapt/base/check.h"
#include "rapt/nn/torch/batch.h"
#include "rapt/ops/attention.h"
#include "rapt/ops/expand.h"

namespace rapt::nn::torch {
namespace {

constexpr const char* kWho = "scaled_dot_product_attention";

// The sizes of a call. Leading axes before the heads are one batch.
struct Sizes {
  Shape leading;  // of the query, heads included
  int64_t B = 1, H = 1, Hk = 1, L = 0, S = 0, E = 0, Ev = 0;
};

Shape join(const Shape& leading, std::initializer_list<int64_t> rest) {
  std::vector<int64_t> sizes(leading.sizes().begin(), leading.sizes().end());
  sizes.insert(sizes.end(), rest);
  return Shape(sizes);
}

void check_tensor(const char* name, const Tensor& x, const Tensor& query) {
  RAPT_CHECK(x.defined() && x.rank() >= 2,
             "{}: {}: expected at least two axes, (..., {}, {}), got {}", kWho, name,
             &x == &query ? "L" : "S", name[0] == 'v' ? "Ev" : "E",
             x.defined() ? x.shape().text() : "no tensor");
  RAPT_CHECK(x.rank() == query.rank(), "{}: {}: expected {} axes as query {} has, got {}", kWho,
             name, query.rank(), query.shape().text(), x.shape().text());
  const bool number =
      x.dtype() == DType::f32 || x.dtype() == DType::f64 || x.dtype() == DType::bf16;
  RAPT_CHECK(x.dtype() == query.dtype() && number, "{}: {}: expected {}, got {}", kWho, name,
             &x == &query ? "f32, f64 or bf16" : dtype_name(query.dtype()), dtype_name(x.dtype()));
  RAPT_CHECK(x.dim(-1) > 0, "{}: {}: expected a last axis of at least 1, got {}", kWho, name,
             x.shape().text());
}

// Keys' or values' leading axes against the query's.
void check_leading(const char* name, const Tensor& x, const Tensor& query, bool grouped) {
  for (int axis = 0; axis < query.rank() - 2; ++axis) {
    const bool heads = axis == query.rank() - 3;
    if (heads && grouped) continue;
    RAPT_CHECK(x.dim(axis) == query.dim(axis),
               "{}: {}: expected axis {} to be {} as in query {}, got {}{}", kWho, name, axis,
               query.dim(axis), query.shape().text(), x.shape().text(),
               heads ? "; enable_gqa allows fewer heads" : "");
  }
}

void check_groups(const Tensor& query, const Tensor& key, const Tensor& value) {
  RAPT_CHECK(query.rank() >= 3, "{}: enable_gqa: expected an axis of heads, got query {}", kWho,
             query.shape().text());
  const int64_t H = query.dim(-3), Hk = key.dim(-3);
  RAPT_CHECK(H > 0, "{}: query: expected at least one head, got {}", kWho, query.shape().text());
  RAPT_CHECK(Hk > 0 && H % Hk == 0,
             "{}: key: expected a number of heads that divides query's {}, got {}", kWho, H,
             key.shape().text());
  RAPT_CHECK(value.dim(-3) == Hk, "{}: value: expected {} heads as key has, got {}", kWho, Hk,
             value.shape().text());
}

Sizes check(const Tensor& query, const Tensor& key, const Tensor& value,
            const ScaledDotProductAttentionOptions& options) {
  check_tensor("query", query, query);
  check_tensor("key", key, query);
  check_tensor("value", value, query);
  RAPT_CHECK(query.rank() < 4 || query.dim(-3) > 0, "{}: query: expected at least one head, got {}",
             kWho, query.shape().text());
  if (options.enable_gqa) check_groups(query, key, value);
  check_leading("key", key, query, options.enable_gqa);
  check_leading("value", value, query, options.enable_gqa);
  RAPT_CHECK(key.dim(-1) == query.dim(-1),
             "{}: key: expected a last axis of {} as query has, got {}", kWho, query.dim(-1),
             key.shape().text());
  RAPT_CHECK(value.dim(-2) == key.dim(-2), "{}: value: expected {} rows as key has, got {}", kWho,
             key.dim(-2), value.shape().text());
  RAPT_CHECK(!options.scale || std::isfinite(*options.scale),
             "{}: scale: expected a finite number, got {}", kWho, options.scale.value_or(0));
  RAPT_CHECK(options.dropout_p >= 0 && options.dropout_p < 1,
             "{}: dropout_p: expected a probability in [0, 1), got {}", kWho, options.dropout_p);
  RAPT_CHECK(!options.is_causal || !options.attn_mask.defined(),
             "{}: is_causal: expected it without attn_mask, got both; a mask can hide later keys "
             "itself",
             kWho);
  Sizes sizes;
  const int rank = query.rank();
  sizes.leading = Shape(query.shape().sizes().first(static_cast<size_t>(rank - 2)));
  for (int axis = 0; axis < rank - 3; ++axis) sizes.B *= query.dim(axis);
  if (rank >= 3) {
    sizes.H = query.dim(-3);
    sizes.Hk = key.dim(-3);
  }
  sizes.L = query.dim(-2);
  sizes.S = key.dim(-2);
  sizes.E = query.dim(-1);
  sizes.Ev = value.dim(-1);
  return sizes;
}

// attn_mask as (B or 1, H or 1, L or 1, S); what is repeated along other axes is copied.
Tensor check_mask(const Tensor& mask, const Tensor& query, const Sizes& sizes) {
  // Scores are f32 where the inputs are bf16, and so is what is added to them.
  const DType number = query.dtype() == DType::bf16 ? DType::f32 : query.dtype();
  RAPT_CHECK(mask.dtype() == DType::boolean || mask.dtype() == number,
             "{}: attn_mask: expected bool or {}, got {}", kWho, dtype_name(number),
             dtype_name(mask.dtype()));
  const Shape full = join(sizes.leading, {sizes.L, sizes.S});
  bool fits = mask.rank() <= full.rank();
  for (int i = 1; i <= mask.rank() && fits; ++i)
    fits = mask.dim(-i) == full[-i] || mask.dim(-i) == 1;
  RAPT_CHECK(fits, "{}: attn_mask: expected a shape that broadcasts to {}, got {}", kWho,
             full.text(), mask.shape().text());
  const auto size = [&](int from_last) {
    return from_last <= mask.rank() ? mask.dim(-from_last) : int64_t{1};
  };
  std::vector<int64_t> wanted(full.sizes().begin(), full.sizes().end());
  bool shared = true;  // by all of the batch
  for (int i = 4; i <= full.rank(); ++i) shared = shared && size(i) == 1;
  for (int i = 2; i <= full.rank(); ++i) {
    if (i < 4 || shared) wanted[wanted.size() - static_cast<size_t>(i)] = size(i);
  }
  const Shape repeated(wanted);
  const Tensor dense =
      repeated.numel() == mask.numel() && mask.contiguous() ? mask : expand(mask, repeated);
  return dense.reshape({shared ? 1 : sizes.B, size(3), size(2), sizes.S});
}

// (..., T, D) as (B, heads, T, D).
Tensor heads_first(const Tensor& x, int64_t B, int64_t heads) {
  const Tensor dense = x.contiguous() ? x : expand(x, x.shape());
  return dense.reshape({B, heads, x.dim(-2), x.dim(-1)});
}

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const ScaledDotProductAttentionOptions& options,
                                    const Pass& pass) {
  const Sizes s = check(query, key, value, options);
  rapt::AttentionOptions how{
      .scale = options.scale, .dropout = pass.any_dropout(options.dropout_p), .split = true};
  Mask mask = options.is_causal ? Mask::causal() : Mask();
  if (options.attn_mask.defined()) {
    const Tensor dense = check_mask(options.attn_mask, query, s);
    if (dense.dtype() == DType::boolean) {
      mask = Mask::keep(dense);
    } else {
      how.bias = dense;
    }
  }
  const Shape shape = join(s.leading, {s.L, s.Ev});
  if (s.H == 0) return Tensor::zeros(shape, query.dtype());  // a batch (N, L, E) of none
  const Tensor context =
      attention(heads_first(query, s.B, s.H), equal_rows(s.B, s.L, query_position(s.L, s.S)),
                heads_first(key, s.B, s.Hk), heads_first(value, s.B, s.Hk),
                equal_rows(s.B, s.S, key_position(s.L, s.S)), mask, how);
  return context.reshape(shape);
}

}  // namespace rapt::nn::torch
