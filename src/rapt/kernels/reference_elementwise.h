// Elementwise kernels and dropout as plain loops; see reference.h.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <type_traits>

#include "rapt/kernels/elementwise.h"
#include "rapt/kernels/types.h"

namespace rapt::kernels::reference {

template <class T>
void add(const T* a, int64_t lda, const T* b, int64_t ldb, T* y, int64_t ldy, int64_t rows,
         int64_t cols) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) y[i * ldy + j] = a[i * lda + j] + b[i * ldb + j];
  }
}

template <class T>
void multiply(const T* a, int64_t lda, const T* b, int64_t ldb, T* y, int64_t ldy, int64_t rows,
              int64_t cols) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) y[i * ldy + j] = a[i * lda + j] * b[i * ldb + j];
  }
}

template <class T>
void scale(const T* x, int64_t ldx, double factor, T* y, int64_t ldy, int64_t rows, int64_t cols,
           bool accumulate) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) {
      const T value = static_cast<T>(factor) * x[i * ldx + j];
      y[i * ldy + j] = accumulate ? y[i * ldy + j] + value : value;
    }
  }
}

template <class T>
void fill(T* y, int64_t ldy, double value, int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) y[i * ldy + j] = static_cast<T>(value);
  }
}

template <class From, class To>
void convert(const From* x, To* y, int64_t n) {
  constexpr bool narrow = std::is_same_v<From, bf16> || std::is_same_v<To, bf16>;
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (narrow) {
      y[i] = static_cast<To>(static_cast<float>(x[i]));
    } else {
      y[i] = static_cast<To>(x[i]);
    }
  }
}

template <class T>
double sum(const T* x, int64_t n) {
  double total = 0;
  for (int64_t i = 0; i < n; ++i) total += static_cast<double>(x[i]);
  return total;
}

template <class T>
double sum_of_squares(const T* x, int64_t n) {
  double total = 0;
  for (int64_t i = 0; i < n; ++i) total += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return total;
}

// The argument of gelu_tanh's tanh, and its derivative.
template <class T>
T gelu_inner(T x) {
  return std::sqrt(T(2) / std::numbers::pi_v<T>) * (x + T(0.044715) * x * x * x);
}
template <class T>
T gelu_inner_grad(T x) {
  return std::sqrt(T(2) / std::numbers::pi_v<T>) * (1 + T(3 * 0.044715) * x * x);
}

// The functions and derivatives that activation() and activation_grad() apply.
template <class T>
T activate(Activation kind, T x) {
  switch (kind) {
    case Activation::relu:
      return x < 0 ? T(0) : x;
    case Activation::gelu:
      return x * std::erfc(-x / std::numbers::sqrt2_v<T>) / 2;
    case Activation::gelu_tanh:
      return x * (1 + std::tanh(gelu_inner(x))) / 2;
  }
  return x;
}

template <class T>
T derivative(Activation kind, T x) {
  switch (kind) {
    case Activation::relu:
      return x <= 0 ? T(0) : T(1);
    case Activation::gelu: {
      const T density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi_v<T>);
      return std::erfc(-x / std::numbers::sqrt2_v<T>) / 2 + x * density;
    }
    case Activation::gelu_tanh: {
      const T t = std::tanh(gelu_inner(x));
      return (1 + t) / 2 + x * (1 - t * t) / 2 * gelu_inner_grad(x);
    }
  }
  return T(1);
}

template <class T>
void activation(Activation kind, const T* x, int64_t ldx, T* y, int64_t ldy, int64_t rows,
                int64_t cols) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) y[i * ldy + j] = activate(kind, x[i * ldx + j]);
  }
}

template <class T>
void activation_grad(Activation kind, const T* x, int64_t ldx, const T* dy, int64_t lddy, T* dx,
                     int64_t lddx, int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) {
      dx[i * lddx + j] = dy[i * lddy + j] * derivative(kind, x[i * ldx + j]);
    }
  }
}

// Dropout of the element `channel` of a row.
template <class T>
T dropped(const Dropout& spec, RowId id, int64_t channel, T value) {
  if (spec.probability <= 0) return value;
  const uint32_t word =
      philox_element(spec.key, id.sample, id.position, static_cast<uint32_t>(channel));
  if (word < dropout_threshold(spec.probability)) return T(0);
  return value * static_cast<T>(1 / (1 - spec.probability));
}

template <class T>
void dropout(const Dropout& spec, const RowId* ids, const T* x, int64_t ldx, T* y, int64_t ldy,
             int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows; ++i) {
    const RowId id = row_id(ids, i);
    for (int64_t j = 0; j < cols; ++j) y[i * ldy + j] = dropped(spec, id, j, x[i * ldx + j]);
  }
}

// Qualified: kernels of the same names would be found as well.
template <class T>
void activation_dropout(const ActivationDropout& how, const T* x, int64_t ldx, T* y, int64_t ldy,
                        int64_t rows, int64_t cols) {
  reference::activation(how.kind, x, ldx, y, ldy, rows, cols);
  reference::dropout(how.dropout, how.ids, y, ldy, y, ldy, rows, cols);
}

template <class T>
void activation_dropout_grad(const ActivationDropout& how, const T* kept, int64_t ld, const T* dy,
                             int64_t lddy, T* dx, int64_t lddx, T* y, int64_t ldy, int64_t rows,
                             int64_t cols) {
  reference::dropout(how.dropout, how.ids, dy, lddy, dx, lddx, rows, cols);
  reference::activation_grad(how.kind, kept, ld, dx, lddx, dx, lddx, rows, cols);
  if (y != nullptr && how.kind != Activation::relu)
    reference::activation_dropout(how, kept, ld, y, ldy, rows, cols);
}

}  // namespace rapt::kernels::reference
