// How matrix products are cut into tasks: by their sizes alone. For the sources of kernels/ alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

#include "rapt/base/thread_pool.h"

namespace rapt::kernels {

// Slots of thread_scratch() that the products use.
inline constexpr int kScratchOnednn = 8;    // what a primitive wants; sums of deep panels
inline constexpr int kScratchInput = 9;     // a copy of rows that are read
inline constexpr int kScratchOutput = 10;   // rows before they are cut or converted
inline constexpr int kScratchPartial = 11;  // partial sums of the calling thread's tasks

inline constexpr int64_t kRowChunk = 256;    // rows of a task on the plain layout of a weight
inline constexpr int64_t kFewRows = 64;      // up to so many rows run on kernels of our own
inline constexpr int64_t kRowGrain = 16;     // more are rounded up to a multiple of so many
inline constexpr int64_t kTokenSlice = 512;  // rows that a gradient of a weight sums at a time

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

// Scratch of the calling thread for (rows, cols) floats.
float* float_scratch(int slot, int64_t rows, int64_t cols);

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

// Tiles for products whose rows are tokens: chunks of kRowChunk rows, or twice as many where these
// are enough and the weight is too large for the caches; where chunks are few, pieces of at least
// 256 columns, of which none is shorter than handing it out is worth.
template <class Body>
void for_row_chunks(int64_t rows, int64_t cols, int64_t inner, const Body& body) {
  constexpr int64_t kTasks = 16, kLeastColumns = 256, kLeastProducts = 2'000'000;
  const bool large = rows >= 12 * kRowChunk && cols >= (1 << 20) / inner;
  const int64_t height = large ? 2 * kRowChunk : kRowChunk, chunks = ceil_div(rows, height);
  const int64_t least = std::max(kLeastColumns, kLeastProducts / std::min(rows, height) / inner);
  const int64_t width =
      large ? cols : std::max(round_up(ceil_div(cols, ceil_div(kTasks, chunks)), 64), least);
  for_tiles(rows, cols, height, std::min(width, cols), body);
}

// A part of the gradient of a weight: the tile's sum over the rows [first, last) of x and dy,
// written to `to` or added to it.
struct WeightTask {
  Tile tile;
  int64_t first, last;
  float* to;
  int64_t ld;
  bool add;
};

// Cuts dw (N, K) over M rows into tasks: tiles that are as large as leaves enough of them, and
// where tiles alone are too few, also up to four slices of the rows, whose sums are added up in
// order. Slices begin at multiples of kRowGrain.
void for_weight_tasks(int64_t M, int64_t N, int64_t K, float* dw, int64_t lddw, bool accumulate,
                      const std::function<void(const WeightTask&)>& body);

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
