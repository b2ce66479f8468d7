#include "rapt/kernels/matmul_own.h"

#include <algorithm>

#include "rapt/base/checked.h"
#include "rapt/base/memory.h"
#include "rapt/base/thread_pool.h"
#include "rapt/kernels/matmul_plan.h"
#include "rapt/kernels/matmul_tile.h"

namespace rapt::kernels {
namespace {

// Bytes of the weight that one task reads or writes; of a large one that many rows meet more, since
// in the first rows of a task nothing was fetched ahead.
constexpr int64_t kTaskBytes = 128 << 10, kLargeTaskBytes = 512 << 10;

// Rows of the weight that make a task, of at most `most` bytes.
template <class T>
int64_t rows_of_task(int64_t rows, int64_t cols, int64_t most = kTaskBytes) {
  const int64_t row_bytes = cols * static_cast<int64_t>(sizeof(T));
  const int64_t some = std::clamp(rows * row_bytes / 16, kTaskBytes, most) / row_bytes;
  return std::min(rows, round_up(std::max<int64_t>(some, 1), kTileOutputs));
}

// dx (M, K) = the sum of `slices` partial results, in their order, added to dx with `accumulate`.
template <class T>
void add_slices(const T* partial, int64_t slices, T* dx, int64_t lddx, int64_t M, int64_t K,
                bool accumulate) {
  parallel_ranges(M, std::max<int64_t>(1, 8192 / K), [&](int64_t begin, int64_t end) {
    for (int64_t m = begin; m < end; ++m) {
      T* to = dx + m * lddx;
      for (int64_t s = 0; s < slices; ++s) {
        const T* from = partial + (s * M + m) * K;
        if (s == 0 && !accumulate) {
          std::copy_n(from, K, to);
        } else {
          for (int64_t k = 0; k < K; ++k) to[k] += from[k];
        }
      }
    }
  });
}

}  // namespace

template <class T>
void own_linear(const T* x, int64_t ldx, const T* w, int64_t ldw, const T* bias, T* y, int64_t ldy,
                int64_t M, int64_t N, int64_t K) {
  constexpr int64_t kRows = 2 * kFewRows;
  const int64_t most = M <= kFewRows / 4 ? kTaskBytes : kLargeTaskBytes;
  for_tiles(M, N, kRows, rows_of_task<T>(N, K, most), [&](const Tile& t) {
    tile_linear(x + t.row * ldx, ldx, w + t.col * ldw, ldw,
                bias == nullptr ? nullptr : bias + t.col, y + t.row * ldy + t.col, ldy, t.rows,
                t.cols, K);
  });
}

// Few rows alone leave too few tasks: then the rows of w are cut into slices whose results are
// added up in order, as long as these stay small beside w; else the columns are cut finer.
template <class T>
void own_dx(const T* dy, int64_t lddy, const T* w, int64_t ldw, T* dx, int64_t lddx, int64_t M,
            int64_t N, int64_t K, bool accumulate) {
  constexpr int64_t kTasks = 8, kWidest = 2048 / sizeof(T), kNarrowest = 512 / sizeof(T);
  const int64_t most = std::clamp<int64_t>(N / (8 * M), 1, kTasks);
  int64_t width = kWidest;
  while (width > kNarrowest && ceil_div(M, kFewRows) * ceil_div(K, width) * most < kTasks)
    width /= 2;
  const int64_t across = ceil_div(K, width);
  const int64_t height =
      round_up(ceil_div(N, std::min(most, ceil_div(kTasks, across))), kTileOutputs);
  const int64_t slices = ceil_div(N, height);
  if (slices == 1) {
    return for_tiles(M, K, kFewRows, width, [&](const Tile& t) {
      tile_dx(dy + t.row * lddy, lddy, w + t.col, ldw, dx + t.row * lddx + t.col, lddx, t.rows,
              t.cols, N, accumulate);
    });
  }
  const auto size = narrow<size_t>(
      checked_mul(checked_mul(slices, M, "matrix product"), K, "matrix product"), "matrix product");
  T* const partial = static_cast<T*>(
      thread_scratch(kScratchPartial, checked_mul(size, sizeof(T), "matrix product")));
  for_tiles(N, K, height, width, [&](const Tile& t) {
    tile_dx(dy + t.row, lddy, w + t.row * ldw + t.col, ldw,
            partial + t.row / height * M * K + t.col, K, M, t.cols, t.rows, false);
  });
  add_slices(partial, slices, dx, lddx, M, K, accumulate);
}

template <class T>
void own_dw(const T* dy, int64_t lddy, const T* x, int64_t ldx, T* dw, int64_t lddw, int64_t M,
            int64_t N, int64_t K, bool accumulate) {
  // What fits the caches may be wanted from there.
  const bool past_cache =
      !accumulate && M <= kFewRows && N * K * static_cast<int64_t>(sizeof(T)) >= (1 << 20);
  const int64_t height = rows_of_task<T>(N, K);
  parallel_for(ceil_div(N, height), [&](int64_t task) {
    const int64_t n = task * height;
    for (int64_t m = 0; m == 0 || m < M; m += kFewRows) {
      tile_dw(dy + m * lddy + n, lddy, x + m * ldx, ldx, dw + n * lddw, lddw,
              std::min(height, N - n), K, std::min(kFewRows, M - m), accumulate || m > 0,
              past_cache);
    }
  });
}

template void own_linear(const float*, int64_t, const float*, int64_t, const float*, float*,
                         int64_t, int64_t, int64_t, int64_t);
template void own_linear(const double*, int64_t, const double*, int64_t, const double*, double*,
                         int64_t, int64_t, int64_t, int64_t);
template void own_dx(const float*, int64_t, const float*, int64_t, float*, int64_t, int64_t,
                     int64_t, int64_t, bool);
template void own_dx(const double*, int64_t, const double*, int64_t, double*, int64_t, int64_t,
                     int64_t, int64_t, bool);
template void own_dw(const float*, int64_t, const float*, int64_t, float*, int64_t, int64_t,
                     int64_t, int64_t, bool);
template void own_dw(const double*, int64_t, const double*, int64_t, double*, int64_t, int64_t,
                     int64_t, int64_t, bool);

}  // namespace rapt::kernels
