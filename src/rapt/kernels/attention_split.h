// When attention's products run on the bf16 tiles of x86/split_tiles.h.
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

}  // namespace rapt::kernels
