// Element by element over (rows, cols) matrices with leading dimensions: sums, scaling, conversion,
// activations, dropout. Outputs may be the same memory as an input; none overlap otherwise.
//
// bf16 is computed in f32 and rounded to nearest even where it is stored.
#pragma once

#include <cstdint>

#include "rapt/kernels/types.h"

namespace rapt::kernels {

// y = a + b
void add(const float* a, int64_t lda, const float* b, int64_t ldb, float* y, int64_t ldy,
         int64_t rows, int64_t cols);
void add(const double* a, int64_t lda, const double* b, int64_t ldb, double* y, int64_t ldy,
         int64_t rows, int64_t cols);
void add(const bf16* a, int64_t lda, const bf16* b, int64_t ldb, bf16* y, int64_t ldy, int64_t rows,
         int64_t cols);
// y = a * b
void multiply(const float* a, int64_t lda, const float* b, int64_t ldb, float* y, int64_t ldy,
              int64_t rows, int64_t cols);
void multiply(const double* a, int64_t lda, const double* b, int64_t ldb, double* y, int64_t ldy,
              int64_t rows, int64_t cols);
void multiply(const bf16* a, int64_t lda, const bf16* b, int64_t ldb, bf16* y, int64_t ldy,
              int64_t rows, int64_t cols);
// y = factor * x; with accumulate y += factor * x
void scale(const float* x, int64_t ldx, double factor, float* y, int64_t ldy, int64_t rows,
           int64_t cols, bool accumulate);
void scale(const double* x, int64_t ldx, double factor, double* y, int64_t ldy, int64_t rows,
           int64_t cols, bool accumulate);
void scale(const bf16* x, int64_t ldx, double factor, bf16* y, int64_t ldy, int64_t rows,
           int64_t cols, bool accumulate);
// y = value
void fill(float* y, int64_t ldy, double value, int64_t rows, int64_t cols);
void fill(double* y, int64_t ldy, double value, int64_t rows, int64_t cols);
void fill(bf16* y, int64_t ldy, double value, int64_t rows, int64_t cols);

// Conversions over n contiguous elements; to bf16 rounds to nearest even.
void convert(const float* x, bf16* y, int64_t n);
void convert(const bf16* x, float* y, int64_t n);
void convert(const float* x, double* y, int64_t n);
void convert(const double* x, float* y, int64_t n);

// The sum of n contiguous elements, in f64 and in an order that depends on n alone.
double sum(const float* x, int64_t n);
double sum(const double* x, int64_t n);
double sum_of_squares(const float* x, int64_t n);
double sum_of_squares(const double* x, int64_t n);

// relu: max(x, 0). gelu: x (1 + erf(x / sqrt 2)) / 2 (Hendrycks and Gimpel 2016); gelu_tanh: its
// tanh form.
void activation(Activation kind, const float* x, int64_t ldx, float* y, int64_t ldy, int64_t rows,
                int64_t cols);
void activation(Activation kind, const double* x, int64_t ldx, double* y, int64_t ldy, int64_t rows,
                int64_t cols);
void activation(Activation kind, const bf16* x, int64_t ldx, bf16* y, int64_t ldy, int64_t rows,
                int64_t cols);
// dx = dy f'(x), from the input x (for relu the output serves as well); dx may be dy.
void activation_grad(Activation kind, const float* x, int64_t ldx, const float* dy, int64_t lddy,
                     float* dx, int64_t lddx, int64_t rows, int64_t cols);
void activation_grad(Activation kind, const double* x, int64_t ldx, const double* dy, int64_t lddy,
                     double* dx, int64_t lddx, int64_t rows, int64_t cols);
void activation_grad(Activation kind, const bf16* x, int64_t ldx, const bf16* dy, int64_t lddy,
                     bf16* dx, int64_t lddx, int64_t rows, int64_t cols);

// y = dropout(x); ids has one entry a row. Its own gradient: the same call on dy.
void dropout(const Dropout& spec, const RowId* ids, const float* x, int64_t ldx, float* y,
             int64_t ldy, int64_t rows, int64_t cols);
void dropout(const Dropout& spec, const RowId* ids, const double* x, int64_t ldx, double* y,
             int64_t ldy, int64_t rows, int64_t cols);
void dropout(const Dropout& spec, const RowId* ids, const bf16* x, int64_t ldx, bf16* y,
             int64_t ldy, int64_t rows, int64_t cols);

// An activation and dropout after it.
struct ActivationDropout {
  Activation kind;
  Dropout dropout;
  const RowId* ids = nullptr;  // one a row; null without dropout
};

// y = dropout(f(x))
void activation_dropout(const ActivationDropout& how, const float* x, int64_t ldx, float* y,
                        int64_t ldy, int64_t rows, int64_t cols);
void activation_dropout(const ActivationDropout& how, const double* x, int64_t ldx, double* y,
                        int64_t ldy, int64_t rows, int64_t cols);
void activation_dropout(const ActivationDropout& how, const bf16* x, int64_t ldx, bf16* y,
                        int64_t ldy, int64_t rows, int64_t cols);
// dx, the gradient of x, from dy, that of y. For relu `kept` is y and the last matrix is not
// written; for others it is x, and the last matrix becomes y again unless it is null. dx may be dy,
// and y may be x.
void activation_dropout_grad(const ActivationDropout& how, const float* kept, int64_t ld,
                             const float* dy, int64_t lddy, float* dx, int64_t lddx, float* y,
                             int64_t ldy, int64_t rows, int64_t cols);
void activation_dropout_grad(const ActivationDropout& how, const double* kept, int64_t ld,
                             const double* dy, int64_t lddy, double* dx, int64_t lddx, double* y,
                             int64_t ldy, int64_t rows, int64_t cols);
void activation_dropout_grad(const ActivationDropout& how, const bf16* kept, int64_t ld,
                             const bf16* dy, int64_t lddy, bf16* dx, int64_t lddx, bf16* y,
                             int64_t ldy, int64_t rows, int64_t cols);

}  // namespace rapt::kernels
