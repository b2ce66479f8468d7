#include "rapt/ops/linear_products.h"

#include "rapt/base/profile.h"
#include "rapt/kernels/matmul.h"
#include "rapt/tensor/bytes.h"
#include "rapt/tensor/dispatch.h"

namespace rapt {

double product_flops(int64_t M, int64_t N, int64_t K) {
  return 2.0 * static_cast<double>(M) * static_cast<double>(N) * static_cast<double>(K);
}

namespace {

template <class T, class Y>
void multiply(const Tensor& x, const Tensor& w, const Tensor& b, Tensor& y, bool recorded) {
  const int64_t M = x.dim(0), N = w.dim(0), K = w.dim(1);
  const ProfileScope profile("linear", product_flops(M, N, K), bytes_of(x, w, b, y));
  kernels::linear(x.data<T>(), x.row_stride(), w.data<T>(), w.row_stride(),
                  b.defined() ? b.data<Precise<T>>() : nullptr, y.data<Y>(), N, M, N, K,
                  recorded ? kernels::RowPolicy::fast : kernels::RowPolicy::independent);
}

}  // namespace

Tensor linear_product(const Tensor& x, const Tensor& w, const Tensor& b, bool recorded) {
  Tensor y = Tensor::empty({x.dim(0), w.dim(0)}, x.dtype());
  dispatch_activation(x.dtype(), "linear", [&](auto tag) {
    using T = decltype(tag);
    multiply<T, T>(x, w, b, y, recorded);
  });
  return y;
}

Tensor precise_linear_product(const Tensor& x, const Tensor& w, const Tensor& b) {
  Tensor y = Tensor::empty({x.dim(0), w.dim(0)}, precise(x.dtype()));
  dispatch_activation(x.dtype(), "linear", [&](auto tag) {
    using T = decltype(tag);
    multiply<T, Precise<T>>(x, w, b, y, false);
  });
  return y;
}

void linear_input_gradient(const Tensor& dy, const Tensor& w, Tensor dx, bool accumulate) {
  const int64_t M = dy.dim(0), N = w.dim(0), K = w.dim(1);
  dispatch_activation(dy.dtype(), "linear", [&](auto tag) {
    using T = decltype(tag);
    const ProfileScope profile("linear dx", product_flops(M, N, K), bytes_of(dy, w, dx));
    kernels::linear_dx(dy.data<T>(), N, w.data<T>(), w.row_stride(), dx.template data<T>(),
                       dx.row_stride(), M, N, K, accumulate);
  });
}

void linear_parameter_gradients(const Tensor& dy, const Tensor& x, int weight, Sink& d) {
  const int64_t M = dy.dim(0), N = dy.dim(1), K = x.dim(1);
  dispatch_activation(dy.dtype(), "linear", [&](auto tag) {
    using T = decltype(tag);
    if (d.wants(weight)) {
      auto [dw, first] = d.add(weight);
      const ProfileScope profile("linear dw", product_flops(M, N, K), bytes_of(dy, x, dw));
      kernels::linear_dw(dy.data<T>(), N, x.data<T>(), x.row_stride(),
                         dw.template data<Precise<T>>(), dw.row_stride(), M, N, K, !first);
    }
    if (d.wants(weight + 1)) {
      auto [db, first] = d.add(weight + 1);
      const ProfileScope profile("linear db", 0, bytes_of(dy, db));
      kernels::linear_db(dy.data<T>(), N, db.template data<Precise<T>>(), M, N, !first);
    }
  });
}

}  // namespace rapt
