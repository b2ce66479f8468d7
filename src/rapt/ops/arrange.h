// Moving elements: axes swapped, rows and columns appended.
#pragma once

#include "rapt/tensor/rows.h"
#include "rapt/tensor/tape.h"

namespace rapt {

// (A, B, C) -> (B, A, C), a copy. Throws Error for another rank.
Tensor swap_axes(const Tensor& x);

// One row more at the end of every sentence: x (N, ..) with the sentences of `rows`, which have no
// gaps -> (N + B, ..). `row` has as many elements as a row of x; undefined: zeros. Throws Error
// where sizes or types differ.
Tensor append_row(const Tensor& x, const Rows& rows, const Tensor& row);

// One column of zeros more: x (.., C), contiguous -> (.., C + 1); floats or bools.
Tensor append_column(const Tensor& x);

}  // namespace rapt
