// The parts of the int8 products that are not products, for the sources of kernels/ alone. Each is
// the same operations in f32 on every target: int8_rows.cpp is compiled without contraction.
#pragma once

#include <cstdint>

namespace rapt::kernels {

inline constexpr int64_t kInt8Panel = 32;  // outputs
inline constexpr int64_t kInt8Block = 64;  // inner numbers: K is filled up to a multiple with zeros

// One row of activations, in u8: x = scale (q - zero).
struct Int8Row {
  float scale;
  int32_t zero;
};

// q: K numbers, and zeros up to a multiple of kInt8Block.
Int8Row int8_quantise_row(const float* x, int64_t K, uint8_t* q);

// q (K) of one row of a weight; its scale.
float int8_quantise_output(const float* w, int64_t K, int8_t* q);

// What a block of sums, (rows, 32), becomes: y (.., outputs), from row `row` and panel `panel` on.
struct Int8Result {
  const Int8Row* rows;
  const float* scales;
  const int32_t* sums;
  const float* bias;  // of the outputs from `begin` on, or null
  float* y;           // its first column is output `begin`
  int64_t ldy, begin, end;
};
void int8_finish(const Int8Result& result, const int32_t* block, int64_t row, int64_t rows,
                 int64_t panel);

// Products of u8 rows x (rows, K), ldx bytes apart, by panels [first, last) of a weight of K (a
// multiple of kInt8Block) inner numbers, handed to int8_finish() by blocks of at most 32 rows.
struct Int8Product {
  const uint8_t* x;
  int64_t ldx, row, rows;  // x is that of row 0; it may be read up to a multiple of 32 rows
  const int8_t* packed;
  int64_t K, first, last;
};
// Panels of 32 rows of K numbers each.
void int8_dot(const Int8Product& product, const Int8Result& result);

}  // namespace rapt::kernels
