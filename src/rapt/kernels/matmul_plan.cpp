#include "rapt/kernels/matmul_plan.h"

#include "rapt/base/checked.h"
#include "rapt/base/memory.h"

namespace rapt::kernels {
namespace {

// Sizes of the tiles and slices of one gradient.
struct WeightPlan {
  int64_t height, width, slices;

  WeightPlan(int64_t M, int64_t N, int64_t K) {
    constexpr int64_t kLargest = 512, kTasks = 8, kMostSlices = 4;
    const auto equal = [](int64_t size, int64_t most) {
      return std::min(size, round_up(ceil_div(size, ceil_div(size, most)), kRowGrain));
    };
    height = equal(N, kLargest);
    width = equal(K, kLargest);
    const auto tiles = [&] { return ceil_div(N, height) * ceil_div(K, width); };
    slices = 1;
    while (slices < kMostSlices && tiles() * slices < kTasks && M >= 2 * slices * kTokenSlice)
      slices *= 2;
    while (height > 128 && tiles() * slices < kTasks)
      height = round_up(ceil_div(height, 2), kRowGrain);
  }
};

}  // namespace

float* float_scratch(int slot, int64_t rows, int64_t cols) {
  const char* const who = "matrix product";
  const auto size = narrow<size_t>(checked_mul(rows, cols, who), who);
  return static_cast<float*>(thread_scratch(slot, checked_mul(size, sizeof(float), who)));
}

void for_weight_tasks(int64_t M, int64_t N, int64_t K, float* dw, int64_t lddw, bool accumulate,
                      const std::function<void(const WeightTask&)>& body) {
  const WeightPlan plan(M, N, K);
  const int64_t length = round_up(ceil_div(M, plan.slices), kRowGrain);
  const int64_t across = ceil_div(K, plan.width), tiles = ceil_div(N, plan.height) * across;
  float* const partial =
      plan.slices == 1 ? nullptr : float_scratch(kScratchPartial, plan.slices - 1, N * K);
  parallel_for(tiles * plan.slices, [&](int64_t task) {
    const int64_t slice = task / tiles, row = task % tiles / across * plan.height;
    const int64_t col = task % across * plan.width;
    const Tile tile{row, std::min(plan.height, N - row), col, std::min(plan.width, K - col)};
    const int64_t first = slice * length, last = std::min(M, first + length);
    if (slice == 0) {
      body({tile, first, last, dw + row * lddw + col, lddw, accumulate});
    } else {
      body({tile, first, last, partial + ((slice - 1) * N + row) * K + col, K, false});
    }
  });
  if (plan.slices == 1) return;
  parallel_ranges(N, std::max<int64_t>(1, (1 << 14) / K), [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      for (int64_t slice = 1; slice < plan.slices; ++slice) {
        const float* from = partial + ((slice - 1) * N + n) * K;
        float* to = dw + n * lddw;
        for (int64_t k = 0; k < K; ++k) to[k] += from[k];
      }
    }
  });
}

}  // namespace rapt::kernels
