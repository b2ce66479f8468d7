#include "rapt/ops/feed_forward.h"

#include <utility>

#include "rapt/base/profile.h"
#include "rapt/kernels/activated_product.h"
#include "rapt/ops/checks.h"
#include "rapt/ops/linear_products.h"
#include "rapt/tensor/bytes.h"
#include "rapt/tensor/dispatch.h"

namespace rapt {
namespace {

// The hidden layer: f and dropout after it.
struct Hidden {
  kernels::Activation f;
  kernels::Dropout site;
  Rows rows;

  kernels::ActivationDropout how() const {
    return {f, site, site.probability > 0 ? rows.ids() : nullptr};
  }
  bool keeps_result() const { return f == kernels::Activation::relu; }
};

// `before` may be undefined: then what f is given is not stored.
void hidden_layer(const Hidden& hidden, const Tensor& x, const Affine& map, Tensor before,
                  Tensor result, bool recorded) {
  const int64_t M = x.dim(0), N = map.w.dim(0), K = map.w.dim(1);
  dispatch_activation(x.dtype(), "feed_forward", [&](auto tag) {
    using T = decltype(tag);
    const ProfileScope profile("linear, activated", product_flops(M, N, K),
                               bytes_of(x, map.w, map.b, before, result));
    kernels::linear_activated(
        hidden.how(), x.data<T>(), x.row_stride(), map.w.data<T>(), map.w.row_stride(),
        map.b.defined() ? map.b.data<Precise<T>>() : nullptr,
        before.defined() ? before.data<T>() : nullptr, result.data<T>(), M, N, K,
        recorded ? kernels::RowPolicy::fast : kernels::RowPolicy::independent);
  });
}

// The gradient of what f was given; `kept` becomes what f and dropout made of it.
Tensor hidden_gradient(const Hidden& hidden, const Tensor& dy, const Tensor& w, Tensor kept) {
  const int64_t M = dy.dim(0), N = w.dim(0), K = w.dim(1);
  Tensor gradient = empty_like(kept);
  dispatch_activation(dy.dtype(), "feed_forward", [&](auto tag) {
    using T = decltype(tag);
    const ProfileScope profile("linear dx, activated", product_flops(M, N, K),
                               bytes_of(dy, w, kept, gradient));
    kernels::linear_dx_activated(hidden.how(), dy.data<T>(), N, w.data<T>(), w.row_stride(),
                                 kept.data<T>(), gradient.data<T>(), kept.data<T>(), M, N, K);
  });
  return gradient;
}

}  // namespace

Tensor feed_forward(const Tensor& x, const Affine& first, kernels::Activation f, const Rows& rows,
                    const kernels::Dropout& site, const Affine& second) {
  check_linear("feed_forward", x, first.w, first.b);
  RAPT_CHECK(site.probability == 0 || rows.tokens() == x.dim(0),
             "feed_forward: expected {} rows, got shape {}", rows.tokens(), x.shape().text());
  const Hidden hidden{f, site, rows};
  const bool recorded = x.recorded() || first.w.recorded() || first.b.recorded() ||
                        second.w.recorded() || second.b.recorded();
  const Shape shape = {x.dim(0), first.w.dim(0)};
  const Tensor result = Tensor::empty(shape, x.dtype());
  check_linear("feed_forward", result, second.w, second.b);
  const Tensor before = recorded && !hidden.keeps_result() ? empty_like(result) : Tensor();
  hidden_layer(hidden, x, first, before, result, recorded);
  const Tensor y = linear_product(result, second.w, second.b, recorded);
  const Tensor kept = before.defined() ? before : result;
  return record(y, {x, first.w, first.b, second.w, second.b},
                [hidden, x, w1 = first.w, w2 = second.w, kept](const Tensor& dy, Sink& d) {
                  const Tensor dh = hidden_gradient(hidden, dy, w2, kept);
                  linear_parameter_gradients(dy, kept, 3, d);
                  linear_parameter_gradients(dh, x, 1, d);
                  if (!d.wants(0)) return;
                  auto [dx, none_yet] = d.add(0);
                  linear_input_gradient(dh, w1, dx, !none_yet);
                });
}

}  // namespace rapt
