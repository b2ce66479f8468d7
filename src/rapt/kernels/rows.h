// How the kernels that go row by row cut a matrix for the threads: by its size alone, so that
// results cannot depend on the number of threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rapt/base/memory.h"
#include "rapt/base/thread_pool.h"

namespace rapt::kernels {

// Elements of one piece: 64 KiB of each f32 operand, a few microseconds of work.
inline constexpr int64_t kPieceElements = int64_t{1} << 14;

// Scratch of the calling thread for one row in f32.
inline float* row_scratch(int64_t cols) {
  constexpr int kSlot = 12;
  return static_cast<float*>(thread_scratch(kSlot, static_cast<size_t>(cols) * sizeof(float)));
}

// Rows [row, row + rows) and columns [column, column + cols) of a matrix.
struct Piece {
  int64_t row = 0, rows = 0, column = 0, cols = 0;
};

// Rows of a chunk, for kernels that need whole rows.
inline int64_t rows_per_chunk(int64_t cols) {
  return std::max<int64_t>(1, kPieceElements / std::max<int64_t>(1, cols));
}

// Runs body(piece) over all of a matrix. One that is contiguous in every operand is taken as a
// single long row.
template <class Body>
void for_pieces(int64_t rows, int64_t cols, bool contiguous, const Body& body) {
  if (rows <= 0 || cols <= 0) return;
  if (contiguous || rows == 1) {
    parallel_ranges(rows * cols, kPieceElements, [&](int64_t begin, int64_t end) {
      body(Piece{0, 1, begin, end - begin});
    });
  } else {
    parallel_ranges(rows, rows_per_chunk(cols), [&](int64_t begin, int64_t end) {
      body(Piece{begin, end - begin, 0, cols});
    });
  }
}

}  // namespace rapt::kernels
