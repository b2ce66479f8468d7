// Matrix products of a Linear layer: y = x w^T + bias and its three gradients.
//
// Sizes: M rows (tokens), K input channels, N output channels. x (M, K), w (N, K), bias (N), y (M,
// N), each with a leading dimension. Any size may be 0.
//
// How the work is cut depends on the sizes alone, so that any number of threads gives the same
// bits.
#pragma once

#include <cstdint>

#include "rapt/kernels/types.h"

namespace rapt::kernels {

// How rows may be grouped.
enum class RowPolicy {
  fast,         // training: tails of few rows run on kernels of our own
  independent,  // a frozen model: the bits of a row do not depend on how many rows there are
};

// y = x w^T + bias; bias may be null.
void linear(const float* x, int64_t ldx, const float* w, int64_t ldw, const float* bias, float* y,
            int64_t ldy, int64_t M, int64_t N, int64_t K, RowPolicy policy);
void linear(const double* x, int64_t ldx, const double* w, int64_t ldw, const double* bias,
            double* y, int64_t ldy, int64_t M, int64_t N, int64_t K, RowPolicy policy);
// bf16 in, sums in f32; y in bf16 or f32.
void linear(const bf16* x, int64_t ldx, const bf16* w, int64_t ldw, const float* bias, bf16* y,
            int64_t ldy, int64_t M, int64_t N, int64_t K, RowPolicy policy);
void linear(const bf16* x, int64_t ldx, const bf16* w, int64_t ldw, const float* bias, float* y,
            int64_t ldy, int64_t M, int64_t N, int64_t K, RowPolicy policy);

// dx = dy w, or dx += dy w.
void linear_dx(const float* dy, int64_t lddy, const float* w, int64_t ldw, float* dx, int64_t lddx,
               int64_t M, int64_t N, int64_t K, bool accumulate);
void linear_dx(const double* dy, int64_t lddy, const double* w, int64_t ldw, double* dx,
               int64_t lddx, int64_t M, int64_t N, int64_t K, bool accumulate);
void linear_dx(const bf16* dy, int64_t lddy, const bf16* w, int64_t ldw, bf16* dx, int64_t lddx,
               int64_t M, int64_t N, int64_t K, bool accumulate);

// dw = dy^T x, or dw += dy^T x: one task an output tile, over fixed slices of rows in order.
void linear_dw(const float* dy, int64_t lddy, const float* x, int64_t ldx, float* dw, int64_t lddw,
               int64_t M, int64_t N, int64_t K, bool accumulate);
void linear_dw(const double* dy, int64_t lddy, const double* x, int64_t ldx, double* dw,
               int64_t lddw, int64_t M, int64_t N, int64_t K, bool accumulate);
void linear_dw(const bf16* dy, int64_t lddy, const bf16* x, int64_t ldx, float* dw, int64_t lddw,
               int64_t M, int64_t N, int64_t K, bool accumulate);

// db = column sums of dy, or db += them.
void linear_db(const float* dy, int64_t lddy, float* db, int64_t M, int64_t N, bool accumulate);
void linear_db(const double* dy, int64_t lddy, double* db, int64_t M, int64_t N, bool accumulate);
void linear_db(const bf16* dy, int64_t lddy, float* db, int64_t M, int64_t N, bool accumulate);

}  // namespace rapt::kernels
