// What this machine can do at most, measured now.
#pragma once

#include "rapt/tensor/shape.h"

namespace rapt::measure {

// Multiplications and additions a second (a multiply-add is two) of `threads` threads on registers,
// in f32.
double multiply_add_peak(DType dtype, int threads);

}  // namespace rapt::measure
