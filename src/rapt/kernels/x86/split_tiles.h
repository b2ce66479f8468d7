// f32 products on the bf16 tiles of AMX.
//
// An f32 number has 24 significant bits, so it is the exact sum of three bf16 numbers of 8: x = x1
// + x2 + x3, each rounded to nearest from what the ones before it left. Of the nine products of the
// parts of two numbers the six largest are computed (those left out weigh less than 2^-23 of the
// product, and on average far less), each exact, and summed in f32: the result is as exact as that
// of f32 multiply-adds, at more than twice their speed. The scheme is that of Henry, Tang and
// Heinecke 2019, "Leveraging the bfloat16 artificial intelligence datatype for higher-precision
// computations".
//
// Tiles take what is below the normal range (2^-126) as zero. Where a number is infinite or NaN the
// parts cannot say what f32 would; packing reports it, and the caller multiplies another way.
//
// An operand may also be of one part, its numbers rounded to bf16: then both are, and one product
// is computed.
//
// Operands are packed first. A panel is 32 rows of the left operand or 32 columns of the right one,
// cut into blocks of 32 of the inner size; both are filled up with zeros.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rapt::kernels::x86 {

inline constexpr int64_t kPanel = 32;  // also the inner size of a block

inline constexpr int kExactParts = 3;  // that make an f32

// Bytes of a packed operand with `outer` rows (or columns) and `inner` numbers in each, each of
// `parts` (1 or kExactParts).
size_t packed_bytes(int64_t outer, int64_t inner, int parts);

// How an operand is stored: by its rows (columns, for the right one), or by its inner index.
enum class Stored { by_outer, by_inner };

// An operand that is not packed yet: the left one (outer, inner) or the right one (inner, outer) in
// f32, with `ld` elements from one stored row to the next. `to` is aligned to 64 bytes.
struct Unpacked {
  const float* from;
  int64_t ld;
  Stored stored;
  bool left;
  int64_t outer, inner;
  int parts;
  void* to;
};

// False if a number is to have three parts and is infinite, NaN, or within a bf16 rounding of
// infinity.
bool pack(const Unpacked& operand);

// c (rows, cols) = left right + bias (cols, or null), or c += left right. `inner` is what left was
// packed with; of a right operand that was packed with `right_inner` it takes the numbers from a
// block on that `right` begins with.
struct PackedProduct {
  const void* left;
  const void* right;
  int64_t rows, cols, inner, right_inner;
  float* c;
  int64_t ldc;
  bool accumulate;
  const float* bias = nullptr;
};

// A product of operands of kExactParts, while at most two others are packed, which the next call
// needs. False if one of these has a number without parts.
bool multiply_while_packing(const PackedProduct& product, std::span<const Unpacked> next);

}  // namespace rapt::kernels::x86
