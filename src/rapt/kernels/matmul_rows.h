// Products whose rows are tokens, by oneDNN, for the sources of kernels/: in f32 and in bf16.
#pragma once

#include <algorithm>
#include <type_traits>

#include "rapt/kernels/matmul_plan.h"
#include "rapt/kernels/onednn.h"
#include "rapt/kernels/types.h"

namespace rapt::kernels {

template <class T>
inline constexpr onednn::Type kTypeOf =
    std::is_same_v<T, bf16> ? onednn::Type::bf16 : onednn::Type::f32;

// Scratch of the calling thread for (rows, cols) elements.
template <class T>
T* scratch_of(int slot, int64_t rows, int64_t cols) {
  const int64_t bytes = rows * static_cast<int64_t>(sizeof(T));
  return reinterpret_cast<T*>(
      float_scratch(slot, ceil_div(bytes, static_cast<int64_t>(sizeof(float))), cols));
}

// A row of a result: to = sums, or to += sums, rounded once.
template <class Out>
void store_sums(const float* sums, int64_t cols, Out* to, bool accumulate) {
  for (int64_t c = 0; c < cols; ++c)
    to[c] = Out(accumulate ? static_cast<float>(to[c]) + sums[c] : sums[c]);
}

// A result (rows, cols) of rows that travel together: out = in b + bias, or out += in b.
template <class In, class Out>
struct RowProduct {
  const In* in;
  int64_t ld_in, inner;
  const In* weight;
  int64_t ldw;
  bool weight_transposed;  // b is w^T, so that columns of out are rows of w
  const float* bias;
  Out* out;
  int64_t ld_out;
  bool accumulate;

  // The tile of a whole number of kRowGrain rows.
  template <class To>
  void multiply(const Tile& t, const In* from, int64_t ld_from, To* to, int64_t ld_to,
                bool add) const {
    onednn::multiply({.m = t.rows,
                      .n = t.cols,
                      .k = inner,
                      .lda = ld_from,
                      .ldb = ldw,
                      .ldc = ld_to,
                      .b_transposed = weight_transposed,
                      .inputs = kTypeOf<In>,
                      .output = kTypeOf<To>,
                      .bias = bias != nullptr,
                      .accumulate = add},
                     from, weight + (weight_transposed ? t.col * ldw : t.col),
                     bias == nullptr ? nullptr : bias + t.col, to);
  }
};

// y = x w^T + bias, x (.., K), w (.., K).
template <class In, class Out>
RowProduct<In, Out> linear_rows(const In* x, int64_t ldx, const In* w, int64_t ldw,
                                const float* bias, Out* y, int64_t ldy, int64_t K) {
  return {.in = x,
          .ld_in = ldx,
          .inner = K,
          .weight = w,
          .ldw = ldw,
          .weight_transposed = true,
          .bias = bias,
          .out = y,
          .ld_out = ldy,
          .accumulate = false};
}

// dx = dy w, or dx += it, dy (.., N), w (N, ..).
template <class T>
RowProduct<T, T> dx_rows(const T* dy, int64_t lddy, const T* w, int64_t ldw, T* dx, int64_t lddx,
                         int64_t N, bool accumulate) {
  return {.in = dy,
          .ld_in = lddy,
          .inner = N,
          .weight = w,
          .ldw = ldw,
          .weight_transposed = false,
          .bias = nullptr,
          .out = dx,
          .ld_out = lddx,
          .accumulate = accumulate};
}

// A slice of a part of a weight's gradient: task.to = dy^T x, or += it, over `tokens` rows of the
// columns of dy and x that the task takes.
template <class T>
void sum_slice(const WeightTask& task, const T* dy, int64_t lddy, const T* x, int64_t ldx,
               int64_t tokens, bool accumulate) {
  onednn::multiply({.m = task.tile.rows,
                    .n = task.tile.cols,
                    .k = tokens,
                    .lda = lddy,
                    .ldb = ldx,
                    .ldc = task.ld,
                    .a_transposed = true,
                    .inputs = kTypeOf<T>,
                    .accumulate = accumulate},
                   dy, x, nullptr, task.to);
}

// The first `rows` rows.
template <class In, class Out>
void multiply_whole(const RowProduct<In, Out>& p, int64_t rows, int64_t cols) {
  if (rows == 0) return;
  for_row_chunks(rows, cols, p.inner, [&](const Tile& t) {
    p.multiply(t, p.in + t.row * p.ld_in, p.ld_in, p.out + t.row * p.ld_out + t.col, p.ld_out,
               p.accumulate);
  });
}

// The `rows` rows from `first` on, rounded up so that a weight has few shapes: they are computed
// from a copy, and into one in f32, so that a sum is rounded once.
template <class In, class Out>
void multiply_tail(const RowProduct<In, Out>& p, int64_t first, int64_t rows, int64_t cols) {
  const int64_t padded = round_up(rows, kRowGrain);
  In* const in = scratch_of<In>(kScratchInput, padded, p.inner);
  parallel_ranges(padded, kRowGrain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      if (r < rows) {
        std::copy_n(p.in + (first + r) * p.ld_in, p.inner, in + r * p.inner);
      } else {
        std::fill_n(in + r * p.inner, p.inner, In());
      }
    }
  });
  for_row_chunks(padded, cols, p.inner, [&](const Tile& t) {
    float* const out = float_scratch(kScratchOutput, padded, t.cols);
    p.multiply(t, in, p.inner, out, t.cols, false);
    for (int64_t r = 0; r < rows; ++r)
      store_sums(out + r * t.cols, t.cols, p.out + (first + r) * p.ld_out + t.col, p.accumulate);
  });
}

}  // namespace rapt::kernels
