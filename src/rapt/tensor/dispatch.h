// From an element type at run time to one at compile time. For sources only.
#pragma once

#include "rapt/base/check.h"
#include "rapt/tensor/tensor.h"

namespace rapt {

// Calls f(T{}) with T float or double.
template <class F>
decltype(auto) dispatch_float(DType dtype, const char* who, F&& f) {
  if (dtype == DType::f32) return f(float{});
  if (dtype == DType::f64) return f(double{});
  fail(ErrorKind::failure, "{}: expected f32 or f64, got {}", who, dtype_name(dtype));
}

// Calls f(T{}) with what activations may be made of: float, double or bf16. What stands beside them
// is of Precise<T>.
template <class F>
decltype(auto) dispatch_activation(DType dtype, const char* who, F&& f) {
  if (dtype == DType::f32) return f(float{});
  if (dtype == DType::f64) return f(double{});
  if (dtype == DType::bf16) return f(bf16{});
  fail(ErrorKind::failure, "{}: expected f32, f64 or bf16, got {}", who, dtype_name(dtype));
}

// Calls f(T{}) with the element type, whatever it is.
template <class F>
decltype(auto) dispatch_any(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32:
      return f(float{});
    case DType::f64:
      return f(double{});
    case DType::bf16:
      return f(bf16{});
    case DType::i32:
      return f(int32_t{});
    case DType::i64:
      return f(int64_t{});
    case DType::boolean:
      return f(uint8_t{});
  }
  fail(ErrorKind::failure, "unknown element type");
}

// A tensor as a matrix: its first axis by the rest.
struct MatrixSize {
  int64_t rows, cols, ld;
};
inline MatrixSize as_matrix(const Tensor& x) {
  if (x.rank() == 0) return {1, 1, 1};
  return {x.dim(0), x.shape().row_size(), x.row_stride()};
}

}  // namespace rapt
