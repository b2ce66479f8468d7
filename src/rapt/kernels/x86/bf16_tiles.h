// Products of bf16 matrices on the tiles of AMX, sums in f32, as a single-threaded call.
//
// The left operand is read as it lies, row by row, or packed. The right one is packed: a panel is
// 32 columns, cut into blocks of 32 of the inner size, filled up with zeros; a block is two tiles
// of 16 columns, a row of a tile the pairs of two inner numbers for each of them. A panel's block
// is 2 KiB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "rapt/kernels/types.h"
#include "rapt/kernels/x86/split_tiles.h"

namespace rapt::kernels::x86 {

// Packs the panels of a right operand (inner, cols), `stored` with `ld` elements from one stored
// row to the next, to packed_bytes(cols, inner, 1) bytes at `to`, aligned to 64.
void pack_panels(const bf16* from, int64_t ld, Stored stored, int64_t cols, int64_t inner,
                 void* to);

// Packs a left operand (rows, inner) that is stored by its inner size, `ld` elements from one
// stored row to the next, to packed_bytes(rows, inner, 1) bytes at `to`, aligned to 64: panels of
// 32 rows, whose blocks of 32 of the inner size are two tiles of 16 rows.
void pack_turned(const bf16* from, int64_t ld, int64_t rows, int64_t inner, void* to);

// sums (rows, cols) = left right + bias (cols, or null), or sums += left right. Where `out` is
// given, the sums are rounded to it, or added to it, and not stored. `panel_bytes` lie from one
// panel to the next; `right` begins with the block of the panels at which `inner` begins.
//
// With an activation f the sums are a hidden layer: result = f(sums), and the sums are rounded to
// `out` unless that is null. With `gradient` they are the gradient of that result: out = sums
// f'(kept), and result = f(kept); for relu `kept` is its result, which is not written again. The
// three have ld_out.
struct TileProduct {
  const bf16* left = nullptr;
  int64_t ld_left = 0;
  const void* packed_left = nullptr;  // instead of `left`
  const void* right = nullptr;
  int64_t panel_bytes = 0;
  int64_t rows = 0, cols = 0, inner = 0;  // inner at most kDeepest
  float* sums = nullptr;
  int64_t ld_sums = 0;
  bool add = false;
  const float* bias = nullptr;
  bf16* out = nullptr;
  int64_t ld_out = 0;
  bool accumulate = false;
  bool stream = false;  // past the caches; rows of the results begin at multiples of 64 bytes
  std::optional<Activation> activation{};
  bool gradient = false;
  const bf16* kept = nullptr;
  bf16* result = nullptr;
};

inline constexpr int64_t kDeepest = 512;  // 32 rows of so many numbers stay in the first cache

void multiply(const TileProduct& product);

}  // namespace rapt::kernels::x86
