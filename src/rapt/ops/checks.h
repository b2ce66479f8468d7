// What several ops ask of their arguments. All throw Error, as `who`, that says what was expected
// and what came.
#pragma once

#include "rapt/ops/cross_entropy.h"

namespace rapt {

// x (N, in), w (out, in) of x's type, b (out) of its precise type, or undefined.
void check_linear(const char* who, const Tensor& x, const Tensor& w, const Tensor& b);

// targets (N) i32, each below V or the one that is ignored; label_smoothing. Gives the number of
// those that count.
int64_t count_targets(const char* who, const Tensor& targets, int64_t N, int64_t V,
                      const CrossEntropyOptions& options);

}  // namespace rapt
