// Products of a hidden layer with its activation, and dropout after it: the two halves of a
// feed-forward network that touch the hidden layer. Sizes and leading dimensions are those of
// matmul.h; the matrices of the hidden layer have no gaps between rows.
//
// In bf16, where the CPU has tiles and nothing is dropped, the activation is computed while the
// tiles multiply.
#pragma once

#include "rapt/kernels/elementwise.h"
#include "rapt/kernels/matmul.h"

namespace rapt::kernels {

// y (M, N) = dropout(f(h)) of h = x w^T + bias, which is stored to `before` (M, N) unless that is
// null.
void linear_activated(const ActivationDropout& how, const float* x, int64_t ldx, const float* w,
                      int64_t ldw, const float* bias, float* before, float* y, int64_t M, int64_t N,
                      int64_t K, RowPolicy policy);
void linear_activated(const ActivationDropout& how, const double* x, int64_t ldx, const double* w,
                      int64_t ldw, const double* bias, double* before, double* y, int64_t M,
                      int64_t N, int64_t K, RowPolicy policy);
void linear_activated(const ActivationDropout& how, const bf16* x, int64_t ldx, const bf16* w,
                      int64_t ldw, const float* bias, bf16* before, bf16* y, int64_t M, int64_t N,
                      int64_t K, RowPolicy policy);

// dh (M, K), the gradient of h, from dy (M, N), that of y w^T. For relu `kept` is y and the last
// matrix is not written; for others it is h, and the last matrix becomes y again; it may be `kept`.
void linear_dx_activated(const ActivationDropout& how, const float* dy, int64_t lddy,
                         const float* w, int64_t ldw, const float* kept, float* dh, float* y,
                         int64_t M, int64_t N, int64_t K);
void linear_dx_activated(const ActivationDropout& how, const double* dy, int64_t lddy,
                         const double* w, int64_t ldw, const double* kept, double* dh, double* y,
                         int64_t M, int64_t N, int64_t K);
void linear_dx_activated(const ActivationDropout& how, const bf16* dy, int64_t lddy, const bf16* w,
                         int64_t ldw, const bf16* kept, bf16* dh, bf16* y, int64_t M, int64_t N,
                         int64_t K);

}  // namespace rapt::kernels
