// Softmax and cross-entropy over the rows of a matrix. In bf16 all is computed in f32 and rounded
// once, where it is stored; losses are f32.
#pragma once

#include <cstdint>

#include "rapt/kernels/types.h"

namespace rapt::kernels {

// y = softmax of each row; a row of minus infinity alone gives zeros. y may be x.
void softmax(const float* x, int64_t ldx, float* y, int64_t ldy, int64_t rows, int64_t cols);
void softmax(const double* x, int64_t ldx, double* y, int64_t ldy, int64_t rows, int64_t cols);
void softmax(const bf16* x, int64_t ldx, bf16* y, int64_t ldy, int64_t rows, int64_t cols);
// dx = y (dy - sum(y dy)); dx may be dy.
void softmax_grad(const float* y, int64_t ldy, const float* dy, int64_t lddy, float* dx,
                  int64_t lddx, int64_t rows, int64_t cols);
void softmax_grad(const double* y, int64_t ldy, const double* dy, int64_t lddy, double* dx,
                  int64_t lddx, int64_t rows, int64_t cols);
void softmax_grad(const bf16* y, int64_t ldy, const bf16* dy, int64_t lddy, bf16* dx, int64_t lddx,
                  int64_t rows, int64_t cols);
// y = x - log(sum(exp(x))) of each row; a row of minus infinity alone stays what it is. y may be x.
void log_softmax(const float* x, int64_t ldx, float* y, int64_t ldy, int64_t rows, int64_t cols);
void log_softmax(const double* x, int64_t ldx, double* y, int64_t ldy, int64_t rows, int64_t cols);
void log_softmax(const bf16* x, int64_t ldx, bf16* y, int64_t ldy, int64_t rows, int64_t cols);

// log(sum(exp(x))) of each row, so that x less it is log_softmax; 0 for a row of minus infinity
// alone.
void log_sum_exp(const float* x, int64_t ldx, float* sums, int64_t rows, int64_t cols);
void log_sum_exp(const double* x, int64_t ldx, double* sums, int64_t rows, int64_t cols);

// Cross-entropy of logits (rows, V) with label smoothing s (Szegedy et al. 2016, section 7): the
// target distribution is (1 - s) on the target plus s / V on every class. Rows whose target is
// ignore_index give loss 0 and gradient 0. Writes losses[i] and, if d_logits is not null, the
// gradient of the sum of losses (d_logits may be logits). Targets are checked by the caller: in [0,
// V) or ignore_index. A class whose logit is minus infinity costs nothing where it has no share in
// the target; where it has one, the loss is infinite and the gradient finite.
void cross_entropy(const float* logits, int64_t ld, const int32_t* targets, int32_t ignore_index,
                   double smoothing, float* losses, float* d_logits, int64_t ldd, int64_t rows,
                   int64_t V);
void cross_entropy(const double* logits, int64_t ld, const int32_t* targets, int32_t ignore_index,
                   double smoothing, double* losses, double* d_logits, int64_t ldd, int64_t rows,
                   int64_t V);
void cross_entropy(const bf16* logits, int64_t ld, const int32_t* targets, int32_t ignore_index,
                   double smoothing, float* losses, bf16* d_logits, int64_t ldd, int64_t rows,
                   int64_t V);

// The largest element of each row (the first of equals). NaNs are passed over; a row without
// numbers gives 0.
void argmax(const float* x, int64_t ldx, int32_t* index, int64_t rows, int64_t cols);
void argmax(const double* x, int64_t ldx, int32_t* index, int64_t rows, int64_t cols);
void argmax(const bf16* x, int64_t ldx, int32_t* index, int64_t rows, int64_t cols);

// The first of the elements [begin, end) that is above `bar` or NaN; `end` where none is.
int64_t find_above(const float* x, int64_t begin, int64_t end, float bar);
int64_t find_above(const double* x, int64_t begin, int64_t end, double bar);

}  // namespace rapt::kernels
