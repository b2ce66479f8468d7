// Our own products on one thread, for the sources of kernels/ alone. They serve few rows, where
// oneDNN's copying of the weight costs more than the product, and f64, which oneDNN does not have.
//
// A weight is read once, in its own layout and row by row. The bits of a row do not depend on how
// many rows there are, nor on where outputs are cut, if they are cut at multiples of kTileOutputs.
// T is float or double.
#pragma once

#include <cstdint>

namespace rapt::kernels {

inline constexpr int64_t kTileOutputs = 4;

// y (rows, cols) = x (rows, K) w (cols, K)^T + bias (cols); bias may be null. K may not be 0.
template <class T>
void tile_linear(const T* x, int64_t ldx, const T* w, int64_t ldw, const T* bias, T* y, int64_t ldy,
                 int64_t rows, int64_t cols, int64_t K);

// dx (rows, cols) = dy (rows, N) w (N, cols), or dx += it. N may not be 0.
template <class T>
void tile_dx(const T* dy, int64_t lddy, const T* w, int64_t ldw, T* dx, int64_t lddx, int64_t rows,
             int64_t cols, int64_t N, bool accumulate);

// dw (rows, cols) = dy (M, rows)^T x (M, cols), or dw += it. With `past_cache` the result is
// written to memory without being read or kept, where its alignment allows.
template <class T>
void tile_dw(const T* dy, int64_t lddy, const T* x, int64_t ldx, T* dw, int64_t lddw, int64_t rows,
             int64_t cols, int64_t M, bool accumulate, bool past_cache);

}  // namespace rapt::kernels
