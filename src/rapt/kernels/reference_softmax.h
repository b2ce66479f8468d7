// Softmax, cross-entropy and argmax as plain loops; see reference.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace rapt::kernels::reference {

// The largest element, and what softmax subtracts: the largest, or 0 in a row of minus infinity.
template <class T>
T row_shift(const T* x, int64_t cols) {
  T largest = -std::numeric_limits<T>::infinity();
  for (int64_t j = 0; j < cols; ++j) largest = x[j] > largest ? x[j] : largest;
  return largest == -std::numeric_limits<T>::infinity() ? T(0) : largest;
}

template <class T>
T sum_of_exponentials(const T* x, T shift, int64_t cols) {
  T total = 0;
  for (int64_t j = 0; j < cols; ++j) total += std::exp(x[j] - shift);
  return total;
}

template <class T>
void softmax(const T* x, int64_t ldx, T* y, int64_t ldy, int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows; ++i) {
    const T* row = x + i * ldx;
    const T shift = row_shift(row, cols), total = sum_of_exponentials(row, shift, cols);
    const T factor = total == 0 ? T(0) : 1 / total;
    for (int64_t j = 0; j < cols; ++j) y[i * ldy + j] = std::exp(row[j] - shift) * factor;
  }
}

template <class T>
void softmax_grad(const T* y, int64_t ldy, const T* dy, int64_t lddy, T* dx, int64_t lddx,
                  int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows; ++i) {
    T dot = 0;
    for (int64_t j = 0; j < cols; ++j) dot += y[i * ldy + j] * dy[i * lddy + j];
    for (int64_t j = 0; j < cols; ++j) {
      dx[i * lddx + j] = y[i * ldy + j] * (dy[i * lddy + j] - dot);
    }
  }
}

template <class T>
void log_softmax(const T* x, int64_t ldx, T* y, int64_t ldy, int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows; ++i) {
    const T* row = x + i * ldx;
    const T shift = row_shift(row, cols), total = sum_of_exponentials(row, shift, cols);
    const T log_total = total == 0 ? T(0) : std::log(total);
    for (int64_t j = 0; j < cols; ++j) y[i * ldy + j] = (row[j] - shift) - log_total;
  }
}

template <class T>
void log_sum_exp(const T* x, int64_t ldx, T* sums, int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows; ++i) {
    const T* row = x + i * ldx;
    const T shift = row_shift(row, cols), total = sum_of_exponentials(row, shift, cols);
    sums[i] = total == 0 ? T(0) : shift + std::log(total);
  }
}

template <class T>
int64_t find_above(const T* x, int64_t begin, int64_t end, T bar) {
  while (begin < end && x[begin] <= bar) ++begin;
  return begin;
}

// One row's loss and, if d is not null, the gradient.
template <class T>
T cross_entropy_row(const T* x, int32_t target, double smoothing, T* d, int64_t V) {
  const T shift = row_shift(x, V), total = sum_of_exponentials(x, shift, V);
  const T log_total = std::log(total), on_target = static_cast<T>(1 - smoothing);
  const T each = static_cast<T>(smoothing / static_cast<double>(V));
  T loss = smoothing < 1 ? on_target * (log_total - (x[target] - shift)) : T(0);
  if (smoothing > 0) {
    T shifted = 0;
    for (int64_t j = 0; j < V; ++j) shifted += x[j] - shift;
    loss += static_cast<T>(smoothing) * log_total - each * shifted;
  }
  if (d != nullptr) {
    const T factor = total == 0 ? T(0) : 1 / total;
    for (int64_t j = 0; j < V; ++j) d[j] = std::exp(x[j] - shift) * factor - each;
    d[target] -= on_target;
  }
  return total == 0 ? std::numeric_limits<T>::infinity() : loss;
}

template <class T>
void cross_entropy(const T* logits, int64_t ld, const int32_t* targets, int32_t ignore_index,
                   double smoothing, T* losses, T* d_logits, int64_t ldd, int64_t rows, int64_t V) {
  for (int64_t i = 0; i < rows; ++i) {
    T* d = d_logits == nullptr ? nullptr : d_logits + i * ldd;
    if (targets[i] == ignore_index) {
      losses[i] = 0;
      if (d != nullptr) std::fill(d, d + V, T(0));
    } else {
      losses[i] = cross_entropy_row(logits + i * ld, targets[i], smoothing, d, V);
    }
  }
}

template <class T>
void argmax(const T* x, int64_t ldx, int32_t* index, int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows; ++i) {
    T largest = -std::numeric_limits<T>::infinity();
    int64_t best = 0;
    for (int64_t j = 0; j < cols; ++j) {
      if (x[i * ldx + j] > largest) largest = x[i * ldx + j], best = j;
    }
    index[i] = static_cast<int32_t>(best);
  }
}

}  // namespace rapt::kernels::reference
