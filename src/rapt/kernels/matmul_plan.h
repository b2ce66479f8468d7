// How matrix products are cut into tasks: by their sizes alone. For the sources of kernels/ alone.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rapt/base/thread_pool.h"

namespace rapt::kernels {

// Slots of thread_scratch() that the products use.
inline constexpr int kScratchOnednn = 8;    // what a primitive wants
inline constexpr int kScratchInput = 9;     // a copy of rows that are read
inline constexpr int kScratchOutput = 10;   // rows before they are cut or converted
inline constexpr int kScratchPartial = 11;  // partial sums of the calling thread's tasks

inline constexpr int64_t kRowChunk = 256;    // rows of a task on the plain layout of a weight
inline constexpr int64_t kFewRows = 64;      // up to so many rows run on kernels of our own
inline constexpr int64_t kRowGrain = 16;     // more are rounded up to a multiple of so many
inline constexpr int64_t kTokenSlice = 512;  // rows that a gradient of a weight sums at a time

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

struct Tile {
  int64_t row, rows, col, cols;
};

// Runs body(Tile) for each of the tiles of `height` x `width` that a (rows, cols) result is cut
// into.
template <class Body>
void for_tiles(int64_t rows, int64_t cols, int64_t height, int64_t width, const Body& body) {
  const int64_t across = ceil_div(cols, width);
  parallel_for(ceil_div(rows, height) * across, [&](int64_t task) {
    const int64_t row = task / across * height, col = task % across * width;
    body(Tile{row, std::min(height, rows - row), col, std::min(width, cols - col)});
  });
}

// Tiles for products whose rows are tokens: chunks of kRowChunk rows, and where these are few,
// pieces of at least 256 columns, of which none is shorter than handing it out is worth.
template <class Body>
void for_row_chunks(int64_t rows, int64_t cols, int64_t inner, const Body& body) {
  constexpr int64_t kTasks = 16, kLeastColumns = 256, kLeastProducts = 2'000'000;
  const int64_t chunks = ceil_div(rows, kRowChunk);
  const int64_t least = std::max(
      kLeastColumns, kLeastProducts / std::min(rows, kRowChunk) / std::max<int64_t>(inner, 1));
  const int64_t width = std::max(round_up(ceil_div(cols, ceil_div(kTasks, chunks)), 64), least);
  for_tiles(rows, cols, kRowChunk, std::min(width, cols), body);
}

// Tiles for gradients of weights: as wide as may be, up to 512, and as high as leaves twelve tasks.
template <class Body>
void for_weight_tiles(int64_t rows, int64_t cols, const Body& body) {
  const int64_t width = std::min<int64_t>(cols, 512), across = ceil_div(cols, width);
  int64_t height = 256;
  while (height > 64 && ceil_div(rows, height) * across < 12) height /= 2;
  for_tiles(rows, cols, std::min(rows, height), width, body);
}

// Every row of y = bias, or 0 where that is null.
template <class T>
void fill_rows(const T* bias, T* y, int64_t ldy, int64_t M, int64_t N) {
  for (int64_t m = 0; m < M; ++m) {
    if (bias != nullptr) {
      std::copy_n(bias, N, y + m * ldy);
    } else {
      std::fill_n(y + m * ldy, N, T(0));
    }
  }
}

}  // namespace rapt::kernels
