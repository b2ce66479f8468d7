// A tensor repeated along axes of size 1.
#pragma once

#include "rapt/tensor/tape.h"

namespace rapt {

// x in `shape`, a contiguous copy: axes are matched from the last, those that x lacks count as 1,
// and those of size 1 are repeated. Any type; the gradient (of floats) sums over what was repeated.
// Throws Error where x does not fit.
Tensor expand(const Tensor& x, const Shape& shape);

}  // namespace rapt
