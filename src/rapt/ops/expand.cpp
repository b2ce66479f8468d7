#include "rapt/ops/expand.h"

#include <vector>

#include "rapt/base/check.h"
#include "rapt/kernels/elementwise.h"
#include "rapt/tensor/dispatch.h"

namespace rapt {
namespace {

using Strides = std::vector<int64_t>;

// The strides of x along the axes of `shape`: 0 where x is repeated.
Strides strides_of(const Tensor& x, const Shape& shape) {
  bool fits = x.rank() <= shape.rank();
  Strides strides(static_cast<size_t>(shape.rank()));
  int64_t step = 1;
  for (int i = 1; i <= x.rank() && fits; ++i) {
    const int64_t size = x.dim(-i), stride = i == x.rank() ? x.row_stride() : step;
    fits = size == shape[-i] || size == 1;
    strides[static_cast<size_t>(shape.rank() - i)] = size == 1 ? 0 : stride;
    step *= size;
  }
  RAPT_CHECK(fits, "expand: expected a shape that repeats to {}, got {}", shape.text(),
             x.shape().text());
  return strides;
}

// Calls visit(place in x) for every element of `shape`, in order.
template <class F>
void for_each_element(const Shape& shape, const Strides& strides, F&& visit) {
  const int64_t width = shape.rank() == 0 ? 1 : shape[-1];
  const int64_t step = strides.empty() ? 0 : strides.back();
  for (int64_t first = 0; first < shape.numel(); first += width) {
    int64_t rest = first / width, at = 0;
    for (int axis = shape.rank() - 2; axis >= 0; --axis) {
      at += rest % shape[axis] * strides[static_cast<size_t>(axis)];
      rest /= shape[axis];
    }
    for (int64_t i = 0; i < width; ++i) visit(at + i * step);
  }
}

}  // namespace

Tensor expand(const Tensor& x, const Shape& shape) {
  RAPT_CHECK(x.defined(), "expand: expected a tensor, got none");
  const Strides strides = strides_of(x, shape);
  Tensor y = Tensor::empty(shape, x.dtype());
  dispatch_any(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const T* from = x.data<T>();
    T* to = y.data<T>();
    for_each_element(shape, strides, [&](int64_t at) { *to++ = from[at]; });
  });
  return record(y, {x}, [shape](const Tensor& dy, Sink& d) {
    auto [dx, first] = d.add(0);
    const Strides into = strides_of(dx, shape);
    dispatch_float(dy.dtype(), "expand", [&, &dx = dx, first = first](auto tag) {
      using T = decltype(tag);
      T* const to = dx.template data<T>();
      const auto [rows, cols, ld] = as_matrix(dx);
      if (first) kernels::fill(to, ld, 0, rows, cols);
      const T* from = dy.data<T>();
      for_each_element(shape, into, [&](int64_t at) { to[at] += *from++; });
    });
  });
}

}  // namespace rapt
