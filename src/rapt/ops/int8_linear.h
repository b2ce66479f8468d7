// Linear layers and tables of a model frozen in int8.
#pragma once

#include "rapt/tensor/int8_matrix.h"
#include "rapt/tensor/tensor.h"

namespace rapt {

// x (N, in) w^T + b for the outputs [begin, begin + count) of w (out, in); b (count) or undefined.
// -> (N, count), f32. Each row of x becomes u8 with a scale and a zero of its own, sums are exact,
// and so the bits of a row do not depend on the other rows. Throws Error where widths differ, for
// other types than f32, and where a gradient is wanted.
Tensor int8_linear(const Tensor& x, const Int8Matrix& w, int64_t begin, int64_t count,
                   const Tensor& b = {});

// Rows of a table (V, C) by their numbers, ids (N) i32 -> (N, C) f32. Throws Error for an id
// outside of it.
Tensor int8_rows(const Tensor& ids, const Int8Matrix& table);

}  // namespace rapt
