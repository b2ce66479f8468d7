// Some rows of a tensor, and the mean of a sentence's rows.
#pragma once

#include <span>

#include "rapt/tensor/rows.h"
#include "rapt/tensor/tape.h"

namespace rapt {

// x (N, ..), of any type -> (M, ..): row rows[i] in place i; a row may stand twice. Throws Error
// for a row that x does not have.
Tensor select_rows(const Tensor& x, std::span<const int32_t> rows);

// The mean of each sentence's rows: x (N, C) -> (B, C); zeros for an empty sentence.
Tensor mean_rows(const Tensor& x, const Rows& rows);

}  // namespace rapt
