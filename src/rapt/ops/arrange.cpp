#include "rapt/ops/arrange.h"

#include <algorithm>

#include "rapt/base/profile.h"
#include "rapt/tensor/bytes.h"
#include "rapt/tensor/dispatch.h"

namespace rapt {
namespace {

// to[b][a] = from[a][b]: rows of C elements, `from` with A x B of them, outer rows ld apart.
template <class T>
void swap(const T* from, int64_t from_ld, T* to, int64_t to_ld, int64_t A, int64_t B, int64_t C) {
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t a = 0; a < A; ++a)
      std::copy_n(from + a * from_ld + b * C, C, to + b * to_ld + a * C);
  }
}

// Copies `count` pieces of `width` elements.
template <class T>
void copy_pieces(const T* from, int64_t from_ld, T* to, int64_t to_ld, int64_t count,
                 int64_t width) {
  for (int64_t i = 0; i < count; ++i) std::copy_n(from + i * from_ld, width, to + i * to_ld);
}

}  // namespace

Tensor swap_axes(const Tensor& x) {
  RAPT_CHECK(x.rank() == 3, "swap_axes: expected (A, B, C), got {}", x.shape().text());
  const int64_t A = x.dim(0), B = x.dim(1), C = x.dim(2);
  Tensor y = Tensor::empty({B, A, C}, x.dtype());
  dispatch_float(x.dtype(), "swap_axes", [&](auto tag) {
    using T = decltype(tag);
    const ProfileScope profile("swap_axes", 0, bytes_of(x, y));
    swap(x.data<T>(), x.row_stride(), y.data<T>(), A * C, A, B, C);
  });
  return record(y, {x}, [A, B, C](const Tensor& dy, Sink& d) {
    Tensor dx = d.write(0);
    dispatch_float(dy.dtype(), "swap_axes", [&](auto tag) {
      using T = decltype(tag);
      const ProfileScope profile("swap_axes backward", 0, bytes_of(dy, dx));
      swap(dy.data<T>(), A * C, dx.data<T>(), dx.row_stride(), B, A, C);
    });
  });
}

Tensor append_row(const Tensor& x, const Rows& rows, const Tensor& row) {
  RAPT_CHECK(x.rank() >= 2 && rows.is_packed() && x.dim(0) == rows.tokens(),
             "append_row: expected {} rows without gaps, got {}", rows.tokens(), x.shape().text());
  const auto [N, W, ld] = as_matrix(x);
  RAPT_CHECK(!row.defined() || (row.numel() == W && row.dtype() == x.dtype() && row.contiguous()),
             "append_row: expected a row of {} elements of {}, got {}", W, dtype_name(x.dtype()),
             row.shape().text());
  const int64_t B = rows.sentences();
  std::vector<int64_t> sizes = {N + B};
  for (int axis = 1; axis < x.rank(); ++axis) sizes.push_back(x.dim(axis));
  Tensor y = Tensor::empty(Shape(sizes), x.dtype());
  dispatch_float(x.dtype(), "append_row", [&, W = W, ld = ld](auto tag) {
    using T = decltype(tag);
    const T* from = x.data<T>();
    T* to = y.data<T>();
    for (int64_t b = 0; b < B; ++b) {
      const Segment& sentence = rows[b];
      copy_pieces(from + sentence.row * ld, ld, to + (sentence.row + b) * W, W, sentence.count, W);
      T* last = to + (sentence.row + sentence.count + b) * W;
      if (row.defined())
        std::copy_n(row.data<T>(), W, last);
      else
        std::fill_n(last, W, T(0));
    }
  });
  return record(y, {x, row}, [rows, W = W](const Tensor& dy, Sink& d) {
    dispatch_float(dy.dtype(), "append_row", [&](auto tag) {
      using T = decltype(tag);
      const T* from = dy.data<T>();
      if (d.wants(0)) {
        Tensor dx = d.write(0);
        T* to = dx.data<T>();
        for (int64_t b = 0; b < rows.sentences(); ++b)
          copy_pieces(from + (rows[b].row + b) * W, W, to + rows[b].row * dx.row_stride(),
                      dx.row_stride(), rows[b].count, W);
      }
      if (d.wants(1)) {
        Tensor d_row = d.write(1);
        T* to = d_row.data<T>();
        std::fill_n(to, W, T(0));
        for (int64_t b = 0; b < rows.sentences(); ++b) {
          const T* last = from + (rows[b].row + rows[b].count + b) * W;
          for (int64_t c = 0; c < W; ++c) to[c] += last[c];
        }
      }
    });
  });
}

Tensor append_column(const Tensor& x) {
  RAPT_CHECK(x.rank() >= 1 && x.contiguous(),
             "append_column: expected a tensor without gaps, got {}", x.shape().text());
  std::vector<int64_t> sizes(x.shape().sizes().begin(), x.shape().sizes().end());
  const int64_t C = sizes.back()++;
  Tensor y = Tensor::zeros(Shape(sizes), x.dtype());
  const int64_t count = y.numel() / (C + 1);
  dispatch_any(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    copy_pieces(x.data<T>(), C, y.data<T>(), C + 1, count, C);
  });
  return record(y, {x}, [C, count](const Tensor& dy, Sink& d) {
    Tensor dx = d.write(0);
    dispatch_float(dy.dtype(), "append_column", [&](auto tag) {
      using T = decltype(tag);
      copy_pieces(dy.data<T>(), C + 1, dx.data<T>(), C, count, C);
    });
  });
}

}  // namespace rapt
