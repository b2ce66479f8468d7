// The f32 products: bf16 tiles where the CPU has them, else oneDNN, on chunks of rows or output
// tiles; our own tiles for few rows, and on AVX-512 panels for some hundred.
#include "rapt/kernels/matmul.h"

#include <algorithm>

#include "rapt/kernels/matmul_own.h"
#include "rapt/kernels/matmul_panels.h"
#include "rapt/kernels/matmul_plan.h"
#include "rapt/kernels/matmul_rows.h"
#include "rapt/kernels/matmul_split.h"
#include "rapt/kernels/matmul_tile.h"
#include "rapt/kernels/onednn.h"

namespace rapt::kernels {
namespace {

// All but the last few rows, whose number it returns.
int64_t multiply_chunks(const RowProduct<float, float>& p, int64_t rows, int64_t cols) {
  int64_t tail = rows % kRowChunk;
  if (tail % kRowGrain == 0 && tail > kFewRows) tail = 0;
  multiply_whole(p, rows - tail, cols);
  if (tail <= kFewRows) return tail;
  multiply_tail(p, rows - tail, tail, cols);
  return 0;
}

}  // namespace

void linear(const float* x, int64_t ldx, const float* w, int64_t ldw, const float* bias, float* y,
            int64_t ldy, int64_t M, int64_t N, int64_t K, RowPolicy policy) {
  if (M == 0 || N == 0) return;
  if (K == 0) return fill_rows(bias, y, ldy, M, N);
  if (policy == RowPolicy::independent && splits_products())
    return split_linear(x, ldx, w, ldw, bias, y, ldy, M, N, K);
  int64_t few = M;
  if (policy == RowPolicy::fast) {
    const auto rows = linear_rows(x, ldx, w, ldw, bias, y, ldy, K);
    if (M > kFewRows && splits_products()) return split_row_product(rows, M, N);
    if (takes_f32_panels(M)) return panel_row_product(rows, M, N);
    few = multiply_chunks(rows, M, N);
  }
  const int64_t m = M - few;
  if (few > 0) own_linear(x + m * ldx, ldx, w, ldw, bias, y + m * ldy, ldy, few, N, K);
}

void linear_dx(const float* dy, int64_t lddy, const float* w, int64_t ldw, float* dx, int64_t lddx,
               int64_t M, int64_t N, int64_t K, bool accumulate) {
  if (M == 0 || K == 0) return;
  if (N == 0) return accumulate ? void() : fill_rows<float>(nullptr, dx, lddx, M, K);
  const auto rows = dx_rows(dy, lddy, w, ldw, dx, lddx, N, accumulate);
  if (M > kFewRows && splits_products()) return split_row_product(rows, M, K);
  if (takes_f32_panels(M)) return panel_row_product(rows, M, K);
  const int64_t few = multiply_chunks(rows, M, K);
  const int64_t m = M - few;
  if (few > 0) own_dx(dy + m * lddy, lddy, w, ldw, dx + m * lddx, lddx, few, N, K, accumulate);
}

// oneDNN sums slices of rows, the last a multiple of kRowGrain, so that there are few shapes; our
// own tile adds what is left.
void linear_dw(const float* dy, int64_t lddy, const float* x, int64_t ldx, float* dw, int64_t lddw,
               int64_t M, int64_t N, int64_t K, bool accumulate) {
  if (N == 0 || K == 0) return;
  if (M == 0) return accumulate ? void() : fill_rows<float>(nullptr, dw, lddw, N, K);
  if (M <= kFewRows) return own_dw(dy, lddy, x, ldx, dw, lddw, M, N, K, accumulate);
  if (splits_products()) return split_dw(dy, lddy, x, ldx, dw, lddw, M, N, K, accumulate);
  for_weight_tasks(M, N, K, dw, lddw, accumulate, [&](const WeightTask& task) {
    const Tile& t = task.tile;
    const int64_t whole = task.first + (task.last - task.first) / kRowGrain * kRowGrain;
    for (int64_t m = task.first; m < whole; m += kTokenSlice) {
      sum_slice(task, dy + m * lddy + t.row, lddy, x + m * ldx + t.col, ldx,
                std::min(kTokenSlice, whole - m), task.add || m > task.first);
    }
    if (whole < task.last) {
      tile_dw(dy + whole * lddy + t.row, lddy, x + whole * ldx + t.col, ldx, task.to, task.ld,
              t.rows, t.cols, task.last - whole, task.add || whole > task.first, false);
    }
  });
}

}  // namespace rapt::kernels
