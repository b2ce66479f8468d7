// The f64 products, for proofs: our own tiles, as f32 has them for few rows.
#include <algorithm>

#include "rapt/kernels/matmul.h"
#include "rapt/kernels/matmul_own.h"
#include "rapt/kernels/matmul_plan.h"

namespace rapt::kernels {

void linear(const double* x, int64_t ldx, const double* w, int64_t ldw, const double* bias,
            double* y, int64_t ldy, int64_t M, int64_t N, int64_t K, RowPolicy) {
  if (M == 0 || N == 0) return;
  if (K == 0) return fill_rows(bias, y, ldy, M, N);
  own_linear(x, ldx, w, ldw, bias, y, ldy, M, N, K);
}

void linear_dx(const double* dy, int64_t lddy, const double* w, int64_t ldw, double* dx,
               int64_t lddx, int64_t M, int64_t N, int64_t K, bool accumulate) {
  if (M == 0 || K == 0) return;
  if (N == 0) return accumulate ? void() : fill_rows<double>(nullptr, dx, lddx, M, K);
  own_dx(dy, lddy, w, ldw, dx, lddx, M, N, K, accumulate);
}

void linear_dw(const double* dy, int64_t lddy, const double* x, int64_t ldx, double* dw,
               int64_t lddw, int64_t M, int64_t N, int64_t K, bool accumulate) {
  if (N == 0 || K == 0) return;
  if (M == 0) return accumulate ? void() : fill_rows<double>(nullptr, dw, lddw, N, K);
  own_dw(dy, lddy, x, ldx, dw, lddw, M, N, K, accumulate);
}

}  // namespace rapt::kernels
