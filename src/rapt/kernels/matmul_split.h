// The f32 products on bf16 tiles (x86/split_tiles.h), on all threads, for the sources of kernels/
// alone: the functions of matmul.h, where the CPU has such tiles. No size may be 0.
#pragma once

#include <cstdint>

#include "rapt/kernels/matmul_rows.h"

namespace rapt::kernels {

// Whether this CPU and the active instruction set have the tiles.
bool splits_products();

// The first `rows` rows of a product of rows.
void split_row_product(const RowProduct<float, float>& p, int64_t rows, int64_t cols);

// y = x w^T + bias, where the bits of a row do not depend on the other rows; bias may be null.
void split_linear(const float* x, int64_t ldx, const float* w, int64_t ldw, const float* bias,
                  float* y, int64_t ldy, int64_t M, int64_t N, int64_t K);

// dw (N, K) = dy (M, N)^T x (M, K), or dw += it.
void split_dw(const float* dy, int64_t lddy, const float* x, int64_t ldx, float* dw, int64_t lddw,
              int64_t M, int64_t N, int64_t K, bool accumulate);

}  // namespace rapt::kernels
