// What the parts of attention agree on: which keys a query may see by position, how rows are cut,
// and how scratch memory is laid out. Nothing here depends on the instruction set.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "rapt/base/memory.h"
#include "rapt/kernels/attention.h"

namespace rapt::kernels {

// The longest key tile, and the distance of two rows of scores: off the multiples of 4096 bytes, on
// which rows would share a few sets of the cache.
inline constexpr int64_t kMaxKeyTile = 256;
inline constexpr int64_t kScoreStride = kMaxKeyTile + 16;

struct Range {
  int64_t begin = 0, end = 0;
  bool empty() const { return begin >= end; }
};

inline int64_t next_multiple(int64_t value, int64_t to) { return (value + to - 1) / to * to; }
inline int64_t pieces(int64_t count, int64_t most) { return (count + most - 1) / most; }

// Piece `i` of `count` things cut into `n` pieces of about equal size.
inline Range piece(int64_t count, int64_t n, int64_t i) {
  return {i * count / n, (i + 1) * count / n};
}

// The keys (counted in their sentence) that query `i` may see by its position. Both ends rise with
// i.
inline Range keys_by_position(const AttentionMask& mask, const Segment& queries,
                              const Segment& keys, int64_t i) {
  constexpr int64_t kFar = int64_t{1} << 48;  // keeps the sums below from overflowing
  const int64_t here = queries.position + i - keys.position;
  int64_t first = 0, last = keys.count - 1;
  if (mask.causal) last = std::min(last, here);
  if (mask.window >= 0) {
    const int64_t window = std::min(mask.window, kFar);
    first = std::max(first, here - window);
    last = std::min(last, here + window);
  }
  first = std::min(first, keys.count);
  return {first, std::max(first, last + 1)};
}

// The keys that some of the queries [i, end) may see by position.
inline Range keys_by_position(const AttentionMask& mask, const Segment& queries,
                              const Segment& keys, Range i) {
  return {keys_by_position(mask, queries, keys, i.begin).begin,
          keys_by_position(mask, queries, keys, i.end - 1).end};
}

inline Range intersect(Range a, Range b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

// Hands out pieces of one block of scratch, each aligned to 64 bytes. Without a block it only
// counts.
class Carver {
 public:
  explicit Carver(void* block) : block_(static_cast<std::byte*>(block)) {}

  template <class T>
  T* take(int64_t count) {
    T* const piece = block_ == nullptr ? nullptr : reinterpret_cast<T*>(block_ + used_);
    used_ += static_cast<size_t>(next_multiple(count * static_cast<int64_t>(sizeof(T)), 64));
    return piece;
  }
  size_t used() const { return used_; }

 private:
  std::byte* block_;
  size_t used_ = 0;
};

// The scratch of two ways to compute, side by side, since one call may need both.
template <class Plain, class Tiles>
struct ScratchOfBoth {
  template <class... Sizes>
  explicit ScratchOfBoth(Carver& carver, const Sizes&... sizes)
      : plain(carver, sizes...), tiles(carver, sizes...) {}
  Plain plain;
  Tiles tiles;
};
// Of a way that a type does not have.
struct NoScratch {
  template <class... Sizes>
  explicit NoScratch(Carver&, const Sizes&...) {}
};

// A struct of scratch arrays, `Scratch(Carver&, sizes...)`, in the calling thread's slot.
template <class Scratch, class... Sizes>
Scratch scratch_of_thread(int slot, const Sizes&... sizes) {
  Carver counter(nullptr);
  static_cast<void>(Scratch(counter, sizes...));
  Carver carver(thread_scratch(slot, counter.used()));
  return Scratch(carver, sizes...);
}

}  // namespace rapt::kernels
