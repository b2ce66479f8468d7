// Products by our own tiles on all threads, for the sources of kernels/ alone: the functions of
// matmul.h for float and double, at their best up to kFewRows rows. No size may be 0, but M of
// own_dw may.
#pragma once

#include <cstdint>

namespace rapt::kernels {

// The bits of a row do not depend on the other rows.
template <class T>
void own_linear(const T* x, int64_t ldx, const T* w, int64_t ldw, const T* bias, T* y, int64_t ldy,
                int64_t M, int64_t N, int64_t K);

template <class T>
void own_dx(const T* dy, int64_t lddy, const T* w, int64_t ldw, T* dx, int64_t lddx, int64_t M,
            int64_t N, int64_t K, bool accumulate);

template <class T>
void own_dw(const T* dy, int64_t lddy, const T* x, int64_t ldx, T* dw, int64_t lddw, int64_t M,
            int64_t N, int64_t K, bool accumulate);

}  // namespace rapt::kernels
