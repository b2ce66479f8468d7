// The f32 products: oneDNN on chunks of rows or output tiles.
#include "rapt/kernels/matmul.h"

#include <algorithm>
#include <cstring>

#include "rapt/base/check.h"
#include "rapt/base/memory.h"
#include "rapt/base/thread_pool.h"
#include "rapt/kernels/matmul_plan.h"
#include "rapt/kernels/onednn.h"

namespace rapt::kernels {
namespace {

// Runs body(row, rows, col, cols) for the tasks of a (rows, cols) result over `inner`.
template <class Body>
void for_tasks(int64_t rows, int64_t cols, int64_t inner, const Body& body) {
  const int64_t width = columns_of_task(rows, cols, inner);
  const int64_t across = ceil_div(cols, width);
  parallel_for(ceil_div(rows, kRowChunk) * across, [&](int64_t task) {
    const int64_t row = task / across * kRowChunk, col = task % across * width;
    body(row, std::min(kRowChunk, rows - row), col, std::min(width, cols - col));
  });
}

void fill_rows(const float* bias, float* y, int64_t ldy, int64_t M, int64_t N) {
  for (int64_t m = 0; m < M; ++m) {
    if (bias != nullptr) {
      std::copy_n(bias, N, y + m * ldy);
    } else {
      std::fill_n(y + m * ldy, N, 0.0f);
    }
  }
}

}  // namespace

void linear(const float* x, int64_t ldx, const float* w, int64_t ldw, const float* bias, float* y,
            int64_t ldy, int64_t M, int64_t N, int64_t K, RowPolicy) {
  if (M == 0 || N == 0) return;
  if (K == 0) return fill_rows(bias, y, ldy, M, N);
  for_tasks(M, N, K, [&](int64_t row, int64_t rows, int64_t col, int64_t cols) {
    onednn::multiply({.m = rows,
                      .n = cols,
                      .k = K,
                      .lda = ldx,
                      .ldb = ldw,
                      .ldc = ldy,
                      .b_transposed = true,
                      .bias = bias != nullptr},
                     x + row * ldx, w + col * ldw, bias == nullptr ? nullptr : bias + col,
                     y + row * ldy + col);
  });
}

void linear_dx(const float* dy, int64_t lddy, const float* w, int64_t ldw, float* dx, int64_t lddx,
               int64_t M, int64_t N, int64_t K, bool accumulate) {
  if (M == 0 || K == 0) return;
  if (N == 0) return accumulate ? void() : fill_rows(nullptr, dx, lddx, M, K);
  for_tasks(M, K, N, [&](int64_t row, int64_t rows, int64_t col, int64_t cols) {
    onednn::multiply({.m = rows,
                      .n = cols,
                      .k = N,
                      .lda = lddy,
                      .ldb = ldw,
                      .ldc = lddx,
                      .accumulate = accumulate},
                     dy + row * lddy, w + col, nullptr, dx + row * lddx + col);
  });
}

void linear_dw(const float* dy, int64_t lddy, const float* x, int64_t ldx, float* dw, int64_t lddw,
               int64_t M, int64_t N, int64_t K, bool accumulate) {
  if (N == 0 || K == 0) return;
  if (M == 0) return accumulate ? void() : fill_rows(nullptr, dw, lddw, N, K);
  constexpr int64_t kSlice = 512;
  for_tasks(N, K, M, [&](int64_t row, int64_t rows, int64_t col, int64_t cols) {
    for (int64_t m = 0; m < M; m += kSlice) {
      onednn::multiply({.m = rows,
                        .n = cols,
                        .k = std::min(kSlice, M - m),
                        .lda = lddy,
                        .ldb = ldx,
                        .ldc = lddw,
                        .a_transposed = true,
                        .accumulate = accumulate || m > 0},
                       dy + m * lddy + row, x + m * ldx + col, nullptr, dw + row * lddw + col);
    }
  });
}

}  // namespace rapt::kernels
