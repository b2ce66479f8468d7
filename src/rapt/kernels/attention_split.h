// Attention's products on the bf16 tiles of x86/split_tiles.h: when, and with which operands.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "rapt/base/cpu.h"
#include "rapt/kernels/attention_sizes.h"
#include "rapt/kernels/x86/split_tiles.h"

namespace rapt::kernels {

// Sentences with fewer queries or keys than fill a block keep the multiply-adds; in the backward of
// f32 also those where packing ten operands in three parts costs more than tiles save.
inline constexpr int64_t kSplitFrom = x86::kPanel;
inline constexpr int64_t kSplitExactGradientFrom = 128;

// Whether a sentence's products run on tiles. Depends on its own sizes alone.
inline bool splits_sentence(const Segment& queries, const Segment& keys,
                            int64_t least = kSplitFrom) {
  return std::min(queries.count, keys.count) >= least;
}

// The parts of a number on tiles: as many as make an f32, one of bf16, none where a call keeps the
// multiply-adds.
template <class T>
int parts_on_tiles(const AttentionArgs<T>& args) {
  if (!args.split || active_isa() < Isa::amx || std::max(args.Dk, args.Dv) > kMaxKeyTile) return 0;
  return std::is_same_v<T, float> ? x86::kExactParts : std::is_same_v<T, bf16> ? 1 : 0;
}

// c (rows, cols) = left right, or c += it, over the inner numbers [first, first + count) of a right
// operand that was packed with `inner` of them; `first` is a multiple of a block. `left` was packed
// with `count`.
inline void multiply_inner(const void* left, const std::byte* right, int64_t inner, int64_t first,
                           int64_t count, int64_t rows, int64_t cols, int parts, float* c,
                           int64_t ldc, bool add) {
  for (int64_t col = 0; col < cols; col += x86::kPanel) {
    const std::byte* const panel =
        right + x86::packed_bytes(col, inner, parts) + x86::packed_bytes(x86::kPanel, first, parts);
    x86::multiply_packed(left, panel, rows, std::min(x86::kPanel, cols - col), count, parts,
                         nullptr, c + col, ldc, add);
  }
}

// The same over keys: c (rows, cols) = left right, whole blocks of c, where `right` has the keys as
// its columns and `first` of them (a multiple of a block) come before.
inline void multiply_keys(const void* left, const std::byte* right, int64_t inner, int64_t first,
                          int64_t rows, int64_t cols, int parts, float* c, int64_t ldc) {
  x86::multiply_packed(left, right + x86::packed_bytes(first, inner, parts),
                       next_multiple(rows, x86::kPanel), next_multiple(cols, x86::kPanel), inner,
                       parts, nullptr, c, ldc, false);
}

}  // namespace rapt::kernels
