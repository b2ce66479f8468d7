#include "rapt/ops/select.h"

#include <algorithm>
#include <vector>

#include "rapt/base/profile.h"
#include "rapt/kernels/elementwise.h"
#include "rapt/tensor/bytes.h"
#include "rapt/tensor/dispatch.h"

namespace rapt {

Tensor select_rows(const Tensor& x, std::span<const int32_t> rows) {
  RAPT_CHECK(x.rank() >= 1, "select_rows: expected rows, got a scalar");
  for (const int32_t row : rows) {
    RAPT_CHECK(row >= 0 && row < x.dim(0), "select_rows: expected rows below {}, got {}", x.dim(0),
               row);
  }
  std::vector<int64_t> sizes(x.shape().sizes().begin(), x.shape().sizes().end());
  sizes[0] = static_cast<int64_t>(rows.size());
  Tensor y = Tensor::empty(Shape(sizes), x.dtype());
  const auto [N, W, ld] = as_matrix(x);
  dispatch_any(x.dtype(), [&, W = W, ld = ld](auto tag) {
    using T = decltype(tag);
    const ProfileScope profile("select_rows", 0, 2 * bytes_of(y));
    for (size_t i = 0; i < rows.size(); ++i)
      std::copy_n(x.data<T>() + rows[i] * ld, W, y.data<T>() + static_cast<int64_t>(i) * W);
  });
  return record(y, {x},
                [chosen = std::vector<int32_t>(rows.begin(), rows.end()), N = N, W = W](
                    const Tensor& dy, Sink& d) {
                  dispatch_activation(dy.dtype(), "select_rows", [&](auto tag) {
                    using T = decltype(tag);
                    const ProfileScope profile("select_rows backward", 0, 2 * bytes_of(dy));
                    auto [dx, first] = d.add(0);
                    T* to = dx.template data<T>();
                    if (first) kernels::fill(to, dx.row_stride(), 0, N, W);
                    for (size_t i = 0; i < chosen.size(); ++i) {
                      const T* from = dy.data<T>() + static_cast<int64_t>(i) * W;
                      T* row = to + chosen[i] * dx.row_stride();
                      kernels::add(row, W, from, W, row, W, 1, W);
                    }
                  });
                });
}

Tensor mean_rows(const Tensor& x, const Rows& rows) {
  RAPT_CHECK(x.rank() == 2 && rows.is_packed() && x.dim(0) == rows.tokens(),
             "mean_rows: expected ({}, C) without gaps, got {}", rows.tokens(), x.shape().text());
  const int64_t B = rows.sentences(), C = x.dim(1), ld = x.row_stride();
  Tensor y = Tensor::zeros({B, C}, x.dtype());
  dispatch_activation(x.dtype(), "mean_rows", [&](auto tag) {
    using T = decltype(tag);
    const ProfileScope profile("mean_rows", 0, bytes_of(x, y));
    std::vector<Precise<T>> sums(static_cast<size_t>(C));
    for (int64_t b = 0; b < B; ++b) {
      std::fill(sums.begin(), sums.end(), Precise<T>(0));
      for (int64_t i = 0; i < rows[b].count; ++i) {
        const T* from = x.data<T>() + (rows[b].row + i) * ld;
        for (size_t c = 0; c < sums.size(); ++c) sums[c] += static_cast<Precise<T>>(from[c]);
      }
      const auto count = static_cast<Precise<T>>(std::max<int64_t>(rows[b].count, 1));
      T* to = y.data<T>() + b * C;
      for (size_t c = 0; c < sums.size(); ++c) to[c] = T(sums[c] / count);
    }
  });
  return record(y, {x}, [rows, C](const Tensor& dy, Sink& d) {
    Tensor dx = d.write(0);
    dispatch_activation(dy.dtype(), "mean_rows", [&](auto tag) {
      using T = decltype(tag);
      const ProfileScope profile("mean_rows backward", 0, bytes_of(dy, dx));
      for (int64_t b = 0; b < rows.sentences(); ++b) {
        const T* from = dy.data<T>() + b * C;
        const auto count = static_cast<Precise<T>>(rows[b].count);
        for (int64_t i = 0; i < rows[b].count; ++i) {
          T* to = dx.data<T>() + (rows[b].row + i) * dx.row_stride();
          for (int64_t c = 0; c < C; ++c) to[c] = T(static_cast<Precise<T>>(from[c]) / count);
        }
      }
    });
  });
}

}  // namespace rapt
