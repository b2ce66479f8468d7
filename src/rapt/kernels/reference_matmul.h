// The matrix products of matmul.h as plain loops: the oracle of their tests. T is float or double.
#pragma once

#include <cstdint>

namespace rapt::kernels::reference {

// y (M, N) = x (M, K) w (N, K)^T + bias (N); bias may be null.
template <class T>
void linear(const T* x, int64_t ldx, const T* w, int64_t ldw, const T* bias, T* y, int64_t ldy,
            int64_t M, int64_t N, int64_t K) {
  for (int64_t m = 0; m < M; ++m) {
    for (int64_t n = 0; n < N; ++n) {
      T sum = 0;
      for (int64_t k = 0; k < K; ++k) sum += x[m * ldx + k] * w[n * ldw + k];
      y[m * ldy + n] = bias == nullptr ? sum : sum + bias[n];
    }
  }
}

// dx (M, K) = dy (M, N) w (N, K), added to dx with `accumulate`.
template <class T>
void linear_dx(const T* dy, int64_t lddy, const T* w, int64_t ldw, T* dx, int64_t lddx, int64_t M,
               int64_t N, int64_t K, bool accumulate) {
  for (int64_t m = 0; m < M; ++m) {
    for (int64_t k = 0; k < K; ++k) {
      T sum = 0;
      for (int64_t n = 0; n < N; ++n) sum += dy[m * lddy + n] * w[n * ldw + k];
      T& to = dx[m * lddx + k];
      to = accumulate ? to + sum : sum;
    }
  }
}

// dw (N, K) = dy (M, N)^T x (M, K), added to dw with `accumulate`.
template <class T>
void linear_dw(const T* dy, int64_t lddy, const T* x, int64_t ldx, T* dw, int64_t lddw, int64_t M,
               int64_t N, int64_t K, bool accumulate) {
  for (int64_t n = 0; n < N; ++n) {
    for (int64_t k = 0; k < K; ++k) {
      T sum = 0;
      for (int64_t m = 0; m < M; ++m) sum += dy[m * lddy + n] * x[m * ldx + k];
      T& to = dw[n * lddw + k];
      to = accumulate ? to + sum : sum;
    }
  }
}

// db (N) = column sums of dy (M, N), added to db with `accumulate`.
template <class T>
void linear_db(const T* dy, int64_t lddy, T* db, int64_t M, int64_t N, bool accumulate) {
  for (int64_t n = 0; n < N; ++n) {
    T sum = 0;
    for (int64_t m = 0; m < M; ++m) sum += dy[m * lddy + n];
    db[n] = accumulate ? db[n] + sum : sum;
  }
}

}  // namespace rapt::kernels::reference
