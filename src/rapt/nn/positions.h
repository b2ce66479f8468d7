// Positions: sinusoidal ones, Vaswani et al. 2017, section 3.5, and their numbers for tables that
// are learned.
#pragma once

#include "rapt/tensor/rows.h"
#include "rapt/tensor/tensor.h"

namespace rapt::nn {

// (length, C): sin(p / 10000^(i / C)) in the even channels i of position p and cos(p / 10000^((i -
// 1) / C)) in the odd ones; an odd C has one sine more. Computed in f64 and rounded to `dtype`.
// Throws Error for negative sizes.
Tensor sinusoidal_positions(int64_t length, int64_t C, DType dtype);

// (N) i32: each row's position in its sentence, to look up in a learned table.
Tensor position_ids(const Rows& rows);

}  // namespace rapt::nn
