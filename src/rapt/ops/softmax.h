// Softmax over the last axis.
#pragma once

#include "rapt/tensor/tape.h"

namespace rapt {

// x (.., C), contiguous or a matrix -> the same shape; rows sum to 1. A row of minus infinity alone
// gives zeros.
Tensor softmax(const Tensor& x);
// log(softmax(x)), not recorded.
Tensor log_softmax(const Tensor& x);
// x (N, C) of f32 or f64 -> (N) log(sum(exp(x))), so that x less it is log_softmax(x); 0 for a row
// of minus infinity alone. Not recorded.
Tensor log_sum_exp(const Tensor& x);

// The first of the elements [begin, end) of a row that is above `bar` or NaN; `end` where none is.
int64_t find_above(const float* row, int64_t begin, int64_t end, float bar);
int64_t find_above(const double* row, int64_t begin, int64_t end, double bar);

}  // namespace rapt
