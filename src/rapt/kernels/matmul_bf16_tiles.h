// The bf16 products on tiles (x86/bf16_tiles.h), on all threads, for the sources of kernels/ alone,
// where splits_products() says that the CPU has them. No size may be 0.
#pragma once

#include <cstdint>

#include "rapt/kernels/matmul_rows.h"

namespace rapt::kernels {

// Whether these products take so many rows: in decoding, where rows are few, packing would take the
// time.
bool takes_tiles(int64_t rows);

// The first `rows` rows of a product of rows.
void tile_row_product(const RowProduct<bf16, bf16>& p, int64_t rows, int64_t cols);
void tile_row_product(const RowProduct<bf16, float>& p, int64_t rows, int64_t cols);

// What becomes of the sums that were rounded to bf16: x86::TileProduct. All three matrices have the
// leading dimension of the product's own result, which may be null where the sums are not wanted.
struct ActivatedEnd {
  Activation f;
  bool gradient = false;
  const bf16* kept = nullptr;
  bf16* result = nullptr;
};
inline constexpr int64_t kActivatedMost = 4096;  // inner numbers of such a product
void tile_row_product(const RowProduct<bf16, bf16>& p, const ActivatedEnd& end, int64_t rows,
                      int64_t cols);

// y = x w^T + bias, where the bits of a row do not depend on the other rows; bias may be null.
void tile_independent(const bf16* x, int64_t ldx, const bf16* w, int64_t ldw, const float* bias,
                      bf16* y, int64_t ldy, int64_t M, int64_t N, int64_t K);
void tile_independent(const bf16* x, int64_t ldx, const bf16* w, int64_t ldw, const float* bias,
                      float* y, int64_t ldy, int64_t M, int64_t N, int64_t K);

// dw (N, K) = dy (M, N)^T x (M, K), or dw += it.
void tile_dw(const bf16* dy, int64_t lddy, const bf16* x, int64_t ldx, float* dw, int64_t lddw,
             int64_t M, int64_t N, int64_t K, bool accumulate);

}  // namespace rapt::kernels
