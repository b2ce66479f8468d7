// A product of f32 matrices on the bf16 tiles of AMX (split_tiles.h) whose left operand, a weight,
// is read once and taken apart on the way, as a single-threaded call.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rapt::kernels::x86 {

// c = left right. The left operand (rows, inner) lies in memory, `ld` elements from one row to the
// next; the right one (inner, cols) is packed, of kExactParts. c has whole panels of rows and of
// columns, `ldc` numbers from one row to the next. `whole` says for each panel of rows whether all
// of its numbers have parts: else it is not computed.
struct StreamedProduct {
  const float* left;
  int64_t ld, rows, inner;
  const void* right;
  int64_t cols;
  void* packed;  // streamed_bytes(), aligned to 64
  float* c;
  int64_t ldc;
  bool* whole;
};
size_t streamed_bytes(int64_t cols, int64_t inner);

// Each block of the left operand is taken apart while the one before it is multiplied with the
// first panel of columns. A sum has the same bits in whatever column it stands.
void multiply_streamed(const StreamedProduct& product);

// y (rows, outputs) = c^T + bias: c (outputs, rows), bias (outputs) or null.
void turn(const float* c, int64_t ldc, int64_t outputs, int64_t rows, const float* bias, float* y,
          int64_t ldy);

}  // namespace rapt::kernels::x86
