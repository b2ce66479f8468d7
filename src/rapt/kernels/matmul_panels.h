// The products by AVX-512's multiply-adds (x86/panels.h), on all threads, for the sources of
// kernels/ alone: those of matmul.h, where the CPU has these and no tiles. No size may be 0.
#pragma once

#include <cstdint>

#include "rapt/kernels/matmul_rows.h"

namespace rapt::kernels {

// Whether these products take so many rows in f32: few of them have tiles of their own, and of
// thousands oneDNN is faster.
bool takes_f32_panels(int64_t rows);

// Whether they take those in bf16.
bool has_bf16_panels();

// The first `rows` rows of a product of rows.
void panel_row_product(const RowProduct<float, float>& p, int64_t rows, int64_t cols);
void panel_row_product(const RowProduct<bf16, bf16>& p, int64_t rows, int64_t cols);
void panel_row_product(const RowProduct<bf16, float>& p, int64_t rows, int64_t cols);

// dw (N, K) = dy (M, N)^T x (M, K), or dw += it.
void panel_dw(const bf16* dy, int64_t lddy, const bf16* x, int64_t ldx, float* dw, int64_t lddw,
              int64_t M, int64_t N, int64_t K, bool accumulate);

}  // namespace rapt::kernels
