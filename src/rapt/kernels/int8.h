// Products of a frozen model in int8: y = x w^T + bias.
//
// Sizes: M rows (tokens), K input channels, N output channels. A weight w (N, K) is s8, symmetric,
// with one scale for each output: w = scale q, q from -127 to 127. The activations of a row become
// u8 when the product runs, between the row's least and largest number (0 is among them, and
// exact): x = scale (q - zero). Sums are int32 and exact, and the few operations in f32 around them
// are the same everywhere, so the bits of a row depend neither on the other rows nor on the
// instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rapt::kernels {

// A sum of more products could pass the range of int32.
inline constexpr int64_t kInt8MostChannels = 65536;

// q (N, K) without gaps and scales (N) of w. A row that is not finite gets the scale NaN.
void int8_quantise(const float* w, int64_t ldw, int64_t N, int64_t K, int8_t* q, float* scales);

// A weight as products read it. The layout is that of the active instruction set, in panels of 32
// outputs; what fills up the last panel is zero.
struct Int8Weight {
  int64_t N = 0, K = 0;
  const int8_t* packed = nullptr;  // int8_packed_bytes(N, K), aligned to 64
  const float* scales = nullptr;   // int8_outputs(N)
  const int32_t* sums = nullptr;   // int8_outputs(N): of the numbers of each row of q
};
int64_t int8_outputs(int64_t N);  // N rounded up to whole panels
size_t int8_packed_bytes(int64_t N, int64_t K);

// Packs q (N, K).
void int8_pack(const int8_t* q, int64_t N, int64_t K, int8_t* packed, int32_t* sums);

// x (K) = row n of w, in f32.
void int8_row(const Int8Weight& w, int64_t n, float* x);

// y (M, count) = x (M, K) w^T + bias of the outputs [begin, begin + count); bias (count) may be
// null. A row with a number that is not finite, or with a range beyond that of f32, gives NaN.
void int8_linear(const float* x, int64_t ldx, const Int8Weight& w, int64_t begin, int64_t count,
                 const float* bias, float* y, int64_t ldy, int64_t M);

}  // namespace rapt::kernels
