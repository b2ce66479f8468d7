#include "rapt/ops/linear.h"

#include "rapt/base/profile.h"
#include "rapt/kernels/matmul.h"
#include "rapt/ops/checks.h"
#include "rapt/tensor/bytes.h"
#include "rapt/tensor/dispatch.h"

namespace rapt {

Tensor linear(const Tensor& x, const Tensor& w, const Tensor& b) {
  check_linear("linear", x, w, b);
  const int64_t M = x.dim(0), N = w.dim(0), K = w.dim(1);
  const bool recorded = x.recorded() || w.recorded() || b.recorded();
  Tensor y = Tensor::empty({M, N}, x.dtype());
  dispatch_activation(x.dtype(), "linear", [&](auto tag) {
    using T = decltype(tag);
    const ProfileScope profile(
        "linear", 2.0 * static_cast<double>(M) * static_cast<double>(N) * static_cast<double>(K),
        bytes_of(x, w, b, y));
    kernels::linear(x.data<T>(), x.row_stride(), w.data<T>(), w.row_stride(),
                    b.defined() ? b.data<Precise<T>>() : nullptr, y.data<T>(), N, M, N, K,
                    recorded ? kernels::RowPolicy::fast : kernels::RowPolicy::independent);
  });
  return record(y, {x, w, b}, [x, w, M, N, K](const Tensor& dy, Sink& d) {
    dispatch_activation(dy.dtype(), "linear", [&](auto tag) {
      using T = decltype(tag);
      const T* g = dy.data<T>();
      const double flops =
          2.0 * static_cast<double>(M) * static_cast<double>(N) * static_cast<double>(K);
      if (d.wants(0)) {
        auto [dx, first] = d.add(0);
        const ProfileScope profile("linear dx", flops, bytes_of(dy, w, dx));
        kernels::linear_dx(g, N, w.data<T>(), w.row_stride(), dx.template data<T>(),
                           dx.row_stride(), M, N, K, !first);
      }
      if (d.wants(1)) {
        auto [dw, first] = d.add(1);
        const ProfileScope profile("linear dw", flops, bytes_of(dy, x, dw));
        kernels::linear_dw(g, N, x.data<T>(), x.row_stride(), dw.template data<Precise<T>>(),
                           dw.row_stride(), M, N, K, !first);
      }
      if (d.wants(2)) {
        auto [db, first] = d.add(2);
        const ProfileScope profile("linear db", 0, bytes_of(dy, db));
        kernels::linear_db(g, N, db.template data<Precise<T>>(), M, N, !first);
      }
    });
  });
}

}  // namespace rapt
