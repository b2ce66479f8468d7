#include "rapt/kernels/panels.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "rapt/base/check.h"
#include "rapt/base/memory.h"
#include "rapt/kernels/matmul_plan.h"
#include "rapt/kernels/matmul_split.h"
#include "rapt/kernels/x86/split_tiles.h"

namespace rapt::kernels {
namespace {

using x86::kExactParts;
using x86::kPanel;
using x86::Stored;

constexpr int64_t kRows = 256;   // packed at a time
constexpr int64_t kDepth = 512;  // inner numbers of a step: what it reads stays in the second cache

// Larger numbers are rounded to infinity by bf16, or nearly so.
bool has_parts(const float* x, int64_t count) {
  bool all = true;
  for (int64_t i = 0; i < count; ++i) all &= std::abs(x[i]) <= 3.3e38f;
  return all;
}

size_t slice_bytes(int64_t rows, int64_t depth) {
  return x86::packed_bytes(rows, depth, kExactParts);
}

// Some rows of x, taken apart in slices of kDepth inner numbers. A row without parts counts as
// zeros.
struct Left {
  std::byte* data;
  int64_t rows, K;

  std::byte* slice(int64_t k) const {
    return data + k / kDepth * static_cast<int64_t>(slice_bytes(rows, kDepth));
  }

  // Rows [first, first + count) of `from`, which is that row.
  void pack(const float* from, int64_t ldx, int64_t first, int64_t count) const {
    for (int64_t k = 0; k < K; k += kDepth) {
      const int64_t depth = std::min(kDepth, K - k);
      std::byte* const to = slice(k) + first / kPanel * static_cast<int64_t>(slice_bytes(1, depth));
      const bool whole = x86::pack({.from = from + k,
                                    .ld = ldx,
                                    .stored = Stored::by_outer,
                                    .left = true,
                                    .outer = count,
                                    .inner = depth,
                                    .parts = kExactParts,
                                    .to = to});
      RAPT_ASSERT(whole);
    }
  }
};

// The panels [first, last) of a weight against all rows of `left`: a step is a panel by a slice,
// and packs the weight's part of the next step.
struct PanelSteps {
  const Left& left;
  const float* panels;  // of the whole weight
  const float* bias;    // of output `origin` on, or null
  float* y;             // its column 0 is output `origin`
  int64_t ldy, origin, end;

  x86::Unpacked right(int64_t panel, int64_t k, void* to) const {
    return {.from = panels + (panel * left.K + k) * kPanel,
            .ld = kPanel,
            .stored = Stored::by_inner,
            .left = false,
            .outer = kPanel,
            .inner = std::min(kDepth, left.K - k),
            .parts = kExactParts,
            .to = to};
  }

  void run(int64_t first, int64_t last) const {
    const size_t bytes = slice_bytes(kPanel, kDepth);
    auto* const packed = static_cast<std::byte*>(thread_scratch(kScratchOutput, 2 * bytes));
    const int64_t count = last - first, slices = ceil_div(left.K, kDepth);
    x86::pack(right(first, 0, packed));
    for (int64_t step = 0; step < count * slices; ++step) {
      const int64_t panel = first + step % count, k = step / count * kDepth;
      const int64_t next_panel = first + (step + 1) % count, next_k = (step + 1) / count * kDepth;
      const int64_t col = panel * kPanel - origin;
      x86::Unpacked next = right(next_panel, std::min(next_k, left.K - 1),
                                 packed + static_cast<size_t>((step + 1) % 2) * bytes);
      if (next_k >= left.K) next.outer = next.inner = 0;
      const int64_t inner = std::min(kDepth, left.K - k);
      const bool whole =
          x86::multiply_while_packing({.left = left.slice(k),
                                       .right = packed + static_cast<size_t>(step % 2) * bytes,
                                       .rows = left.rows,
                                       .cols = std::min(kPanel, end - panel * kPanel),
                                       .inner = inner,
                                       .right_inner = inner,
                                       .c = y + col,
                                       .ldc = ldy,
                                       .accumulate = k > 0,
                                       .bias = bias == nullptr || k > 0 ? nullptr : bias + col},
                                      {&next, 1});
      RAPT_ASSERT(whole);
    }
  }
};

// One row in f32, as its numbers say: infinity and NaN reach what they reach.
void plain_row(const float* x, const float* panels, int64_t K, int64_t begin, int64_t count,
               const float* bias, float* y) {
  for (int64_t i = 0; i < count; ++i) {
    const int64_t n = begin + i;
    const float* const column = panels + n / kPanel * kPanel * K + n % kPanel;
    float sum = bias == nullptr ? 0 : bias[i];
    for (int64_t k = 0; k < K; ++k) sum += x[k] * column[k * kPanel];
    y[i] = sum;
  }
}

}  // namespace

bool has_panels() { return splits_products(); }

size_t panel_floats(int64_t N, int64_t K) { return static_cast<size_t>(round_up(N, kPanel) * K); }

bool pack_panels(const float* w, int64_t ldw, int64_t N, int64_t K, float* panels) {
  std::atomic<bool> whole{true};
  parallel_for(ceil_div(N, kPanel), [&](int64_t panel) {
    float* const to = panels + panel * kPanel * K;
    for (int64_t i = 0; i < kPanel; ++i) {
      const int64_t n = panel * kPanel + i;
      if (n >= N) {
        for (int64_t k = 0; k < K; ++k) to[k * kPanel + i] = 0;
        continue;
      }
      if (!has_parts(w + n * ldw, K)) whole = false;
      for (int64_t k = 0; k < K; ++k) to[k * kPanel + i] = w[n * ldw + k];
    }
  });
  return whole;
}

void panel_linear(const float* x, int64_t ldx, const float* panels, int64_t K, int64_t begin,
                  int64_t count, const float* bias, float* y, int64_t ldy, int64_t M) {
  if (M == 0 || count == 0) return;
  if (K == 0) return fill_rows(bias, y, ldy, M, count);
  constexpr int64_t kLeastPanels = 4, kTasks = 32;
  const int64_t first = begin / kPanel, last = ceil_div(begin + count, kPanel);
  const int64_t width = std::max(kLeastPanels, ceil_div(last - first, kTasks));
  for (int64_t m = 0; m < M; m += kRows) {
    const int64_t rows = std::min(kRows, M - m);
    const auto slices = static_cast<size_t>(ceil_div(K, kDepth));
    const Left left{static_cast<std::byte*>(
                        thread_scratch(kScratchPartial, slices * slice_bytes(rows, kDepth))),
                    rows, K};
    parallel_ranges(rows, kPanel, [&](int64_t from, int64_t to) {
      const float* rows_of_x = x + (m + from) * ldx;
      int64_t ld = ldx;
      bool whole = true;
      for (int64_t r = 0; r < to - from; ++r) whole &= has_parts(rows_of_x + r * ldx, K);
      if (!whole) {  // a copy, with zeros for those that have none
        float* const copy = float_scratch(kScratchInput, to - from, K);
        for (int64_t r = 0; r < to - from; ++r) {
          const float* const row = rows_of_x + r * ldx;
          has_parts(row, K) ? std::copy_n(row, K, copy + r * K)
                            : std::fill_n(copy + r * K, K, 0.0f);
        }
        rows_of_x = copy;
        ld = K;
      }
      left.pack(rows_of_x, ld, from, to - from);
    });
    const PanelSteps steps{left, panels, bias, y + m * ldy, ldy, begin, begin + count};
    parallel_ranges(last - first, width,
                    [&](int64_t from, int64_t to) { steps.run(first + from, first + to); });
    for (int64_t r = m; r < m + rows; ++r) {
      if (!has_parts(x + r * ldx, K))
        plain_row(x + r * ldx, panels, K, begin, count, bias, y + r * ldy);
    }
  }
}

}  // namespace rapt::kernels
