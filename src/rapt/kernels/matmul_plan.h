// How matrix products are cut into tasks: by their sizes alone. For the sources of kernels/ alone.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rapt::kernels {

// Slots of thread_scratch() that the products use.
inline constexpr int kScratchOnednn = 8;    // what a primitive wants
inline constexpr int kScratchInput = 9;     // a copy of rows that are read
inline constexpr int kScratchOutput = 10;   // rows before they are converted or cut
inline constexpr int kScratchWeight = 11;   // a converted weight
inline constexpr int kScratchPartial = 12;  // partial sums of the calling thread's tasks

inline constexpr int64_t kRowChunk = 256;  // rows of a task on the plain layout of a weight
inline constexpr int64_t kFewRows = 32;    // up to so many rows run on kernels of our own

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

// The columns of one task of a product of `rows` x `cols` x `inner`, cut into row chunks already:
// narrower where there are too few row chunks to keep many threads busy, but never so narrow that a
// task is shorter than handing it out is worth.
constexpr int64_t columns_of_task(int64_t rows, int64_t cols, int64_t inner) {
  constexpr int64_t kTasks = 16;
  constexpr double kLeastFlops = 4e6;
  const double flops = 2.0 * static_cast<double>(std::min(rows, kRowChunk)) *
                       static_cast<double>(cols) * static_cast<double>(inner);
  const auto affordable = static_cast<int64_t>(std::min(flops / kLeastFlops, 1e6));
  const int64_t pieces = std::clamp<int64_t>(ceil_div(kTasks, ceil_div(rows, kRowChunk)), 1,
                                             std::max<int64_t>(1, affordable));
  return std::min(cols, round_up(ceil_div(cols, pieces), 64));
}

}  // namespace rapt::kernels
