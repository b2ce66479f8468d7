// The f64 products, for proofs: plain loops that keep several sums at once.
#include <algorithm>

#include "rapt/base/thread_pool.h"
#include "rapt/kernels/matmul.h"
#include "rapt/kernels/matmul_plan.h"

namespace rapt::kernels {
namespace {

constexpr int64_t kBlock = 64;

// c (rows, cols) += a b over `inner`, where a(i, p) = a[i * a_row + p * a_col] and b's rows are p.
void add_product(const double* a, int64_t a_row, int64_t a_col, const double* b, int64_t ldb,
                 double* c, int64_t ldc, int64_t rows, int64_t cols, int64_t inner) {
  for (int64_t i = 0; i < rows; ++i) {
    double* to = c + i * ldc;
    int64_t p = 0;
    for (; p + 4 <= inner; p += 4) {
      const double a0 = a[i * a_row + p * a_col], a1 = a[i * a_row + (p + 1) * a_col];
      const double a2 = a[i * a_row + (p + 2) * a_col], a3 = a[i * a_row + (p + 3) * a_col];
      const double *b0 = b + p * ldb, *b1 = b0 + ldb, *b2 = b1 + ldb, *b3 = b2 + ldb;
      for (int64_t j = 0; j < cols; ++j)
        to[j] += (a0 * b0[j] + a1 * b1[j]) + (a2 * b2[j] + a3 * b3[j]);
    }
    for (; p < inner; ++p) {
      const double factor = a[i * a_row + p * a_col];
      for (int64_t j = 0; j < cols; ++j) to[j] += factor * b[p * ldb + j];
    }
  }
}

// c = a b or c += a b by tasks of kBlock x 4 kBlock results.
void product(const double* a, int64_t a_row, int64_t a_col, const double* b, int64_t ldb, double* c,
             int64_t ldc, int64_t rows, int64_t cols, int64_t inner, bool accumulate) {
  const int64_t across = ceil_div(cols, 4 * kBlock);
  parallel_for(ceil_div(rows, kBlock) * across, [&](int64_t task) {
    const int64_t i = task / across * kBlock, j = task % across * 4 * kBlock;
    const int64_t high = std::min(kBlock, rows - i), wide = std::min(4 * kBlock, cols - j);
    double* to = c + i * ldc + j;
    if (!accumulate) {
      for (int64_t r = 0; r < high; ++r) std::fill_n(to + r * ldc, wide, 0.0);
    }
    for (int64_t p = 0; p < inner; p += kBlock) {
      add_product(a + i * a_row + p * a_col, a_row, a_col, b + p * ldb + j, ldb, to, ldc, high,
                  wide, std::min(kBlock, inner - p));
    }
  });
}

}  // namespace

void linear(const double* x, int64_t ldx, const double* w, int64_t ldw, const double* bias,
            double* y, int64_t ldy, int64_t M, int64_t N, int64_t K, RowPolicy) {
  const int64_t across = ceil_div(N, kBlock);
  parallel_for(ceil_div(M, kBlock) * across, [&](int64_t task) {
    const int64_t first = task / across * kBlock, last = std::min(M, first + kBlock);
    const int64_t from = task % across * kBlock, to = std::min(N, from + kBlock);
    for (int64_t n = from; n < to; ++n) {
      const double* weight = w + n * ldw;
      for (int64_t m = first; m < last; ++m) {
        const double* row = x + m * ldx;
        double sums[8] = {};
        int64_t k = 0;
        for (; k + 8 <= K; k += 8) {
          for (int64_t i = 0; i < 8; ++i) sums[i] += row[k + i] * weight[k + i];
        }
        for (; k < K; ++k) sums[0] += row[k] * weight[k];
        y[m * ldy + n] = ((sums[0] + sums[1]) + (sums[2] + sums[3])) +
                         ((sums[4] + sums[5]) + (sums[6] + sums[7])) +
                         (bias == nullptr ? 0 : bias[n]);
      }
    }
  });
}

void linear_dx(const double* dy, int64_t lddy, const double* w, int64_t ldw, double* dx,
               int64_t lddx, int64_t M, int64_t N, int64_t K, bool accumulate) {
  product(dy, lddy, 1, w, ldw, dx, lddx, M, K, N, accumulate);
}

void linear_dw(const double* dy, int64_t lddy, const double* x, int64_t ldx, double* dw,
               int64_t lddw, int64_t M, int64_t N, int64_t K, bool accumulate) {
  product(dy, 1, lddy, x, ldx, dw, lddw, N, K, M, accumulate);
}

}  // namespace rapt::kernels
