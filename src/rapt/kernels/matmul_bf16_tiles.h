// The bf16 products on tiles (x86/bf16_tiles.h), on all threads, for the sources of kernels/ alone,
// where splits_products() says that the CPU has them. No size may be 0.
#pragma once

#include <cstdint>

#include "rapt/kernels/matmul_rows.h"

namespace rapt::kernels {

// The first `rows` rows of a product of rows.
void tile_row_product(const RowProduct<bf16, bf16>& p, int64_t rows, int64_t cols);
void tile_row_product(const RowProduct<bf16, float>& p, int64_t rows, int64_t cols);

// dw (N, K) = dy (M, N)^T x (M, K), or dw += it.
void tile_dw(const bf16* dy, int64_t lddy, const bf16* x, int64_t ldx, float* dw, int64_t lddw,
             int64_t M, int64_t N, int64_t K, bool accumulate);

}  // namespace rapt::kernels
