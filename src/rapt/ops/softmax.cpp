#include "rapt/ops/softmax.h"

#include "rapt/base/profile.h"
#include "rapt/kernels/softmax.h"
#include "rapt/tensor/bytes.h"
#include "rapt/tensor/dispatch.h"

namespace rapt {
namespace {

// Rows along the last axis.
MatrixSize last_axis(const char* who, const Tensor& x) {
  RAPT_CHECK(x.rank() > 0, "{}: expected at least one axis, got a scalar", who);
  if (x.rank() == 2) return as_matrix(x);
  RAPT_CHECK(x.contiguous(), "{}: expected a contiguous tensor or a matrix, got shape {} with gaps",
             who, x.shape().text());
  const int64_t cols = x.dim(-1);
  return {cols == 0 ? 0 : x.numel() / cols, cols, cols};
}

}  // namespace

Tensor softmax(const Tensor& x) {
  const auto [rows, cols, ld] = last_axis("softmax", x);
  Tensor y = empty_like(x);
  dispatch_activation(x.dtype(), "softmax", [&, rows = rows, cols = cols, ld = ld](auto tag) {
    using T = decltype(tag);
    const ProfileScope profile("softmax", 0, bytes_of(x, y));
    kernels::softmax(x.data<T>(), ld, y.data<T>(), cols, rows, cols);
  });
  return record(y, {x}, [y, rows = rows, cols = cols](const Tensor& dy, Sink& d) {
    Tensor dx = d.write(0);
    dispatch_activation(dy.dtype(), "softmax", [&](auto tag) {
      using T = decltype(tag);
      const ProfileScope profile("softmax backward", 0, bytes_of(y, dy, dx));
      kernels::softmax_grad(y.data<T>(), cols, dy.data<T>(), cols, dx.data<T>(),
                            dx.rank() == 2 ? dx.row_stride() : cols, rows, cols);
    });
  });
}

Tensor log_softmax(const Tensor& x) {
  const auto [rows, cols, ld] = last_axis("log_softmax", x);
  Tensor y = empty_like(x);
  dispatch_activation(x.dtype(), "log_softmax", [&, rows = rows, cols = cols, ld = ld](auto tag) {
    using T = decltype(tag);
    const ProfileScope profile("log_softmax", 0, bytes_of(x, y));
    kernels::log_softmax(x.data<T>(), ld, y.data<T>(), cols, rows, cols);
  });
  return y;
}

Tensor log_sum_exp(const Tensor& x) {
  const MatrixSize size = as_matrix(x);
  Tensor sums = Tensor::empty({size.rows}, x.dtype());
  dispatch_float(x.dtype(), "log_sum_exp", [&](auto tag) {
    using T = decltype(tag);
    const ProfileScope profile("log_sum_exp", 0, bytes_of(x, sums));
    kernels::log_sum_exp(x.data<T>(), size.ld, sums.data<T>(), size.rows, size.cols);
  });
  return sums;
}

int64_t find_above(const float* row, int64_t begin, int64_t end, float bar) {
  return kernels::find_above(row, begin, end, bar);
}
int64_t find_above(const double* row, int64_t begin, int64_t end, double bar) {
  return kernels::find_above(row, begin, end, bar);
}

}  // namespace rapt
