#include "rapt/kernels/matmul_bf16_tiles.h"

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "rapt/base/checked.h"
#include "rapt/base/memory.h"
#include "rapt/kernels/matmul_plan.h"
#include "rapt/kernels/x86/bf16_tiles.h"

namespace rapt::kernels {
namespace {

using x86::kDeepest;
using x86::kPanel;
using x86::Stored;

constexpr int64_t kPackedDepth = 4096;  // inner numbers of a weight that are packed at a time
constexpr int64_t kStaying = 256;  // columns whose panels stay in the second cache, kDeepest deep

size_t packed(int64_t cols, int64_t inner) { return x86::packed_bytes(cols, inner, 1); }

// The inner size in equal parts, none deeper than tiles take.
int64_t depth_of(int64_t inner) {
  return round_up(ceil_div(inner, ceil_div(inner, kDeepest)), kPanel);
}

// A product of rows whose weight is packed, from a column on.
template <class Out>
struct PackedRows {
  static constexpr bool kRounds = std::is_same_v<Out, bf16>;

  const RowProduct<bf16, Out>& p;
  const std::byte* panels;
  int64_t first;  // column that the panels begin with
  int64_t panel_bytes;
  bool stream;

  // A tile of the columns from `first` on, some columns at a time. Sums that are rounded wait for
  // the last part of the inner size.
  void multiply(const Tile& t) const {
    const int64_t depth = depth_of(p.inner);
    float* const waiting =
        kRounds && depth < p.inner ? float_scratch(kScratchOutput, t.rows, kStaying) : nullptr;
    for (int64_t col = t.col; col < t.col + t.cols; col += kStaying) {
      const int64_t cols = std::min(kStaying, t.col + t.cols - col);
      for (int64_t k = 0; k < p.inner; k += depth) {
        x86::TileProduct part{.left = p.in + t.row * p.ld_in + k,
                              .ld_left = p.ld_in,
                              .right = panels + col / kPanel * panel_bytes + packed(kPanel, k),
                              .panel_bytes = panel_bytes,
                              .rows = t.rows,
                              .cols = cols,
                              .inner = std::min(depth, p.inner - k),
                              .sums = waiting,
                              .ld_sums = kStaying,
                              .add = k > 0,
                              .bias = p.bias == nullptr || k > 0 ? nullptr : p.bias + first + col};
        Out* const out = p.out + t.row * p.ld_out + first + col;
        if constexpr (!kRounds) {
          part.sums = out;
          part.ld_sums = p.ld_out;
          part.add = part.add || p.accumulate;
        } else if (k + depth >= p.inner) {
          part.out = out;
          part.ld_out = p.ld_out;
          part.accumulate = p.accumulate;
          part.stream = stream;
        }
        x86::multiply(part);
      }
    }
  }
};

// Packs columns of the weight, on all threads.
template <class Out>
void pack_weight(const RowProduct<bf16, Out>& p, int64_t first, int64_t cols, int64_t panel_bytes,
                 std::byte* to) {
  constexpr int64_t kColumns = 4 * kPanel;
  parallel_for(ceil_div(cols, kColumns), [&](int64_t task) {
    const int64_t col = task * kColumns;
    const bf16* const from = p.weight + (first + col) * (p.weight_transposed ? p.ldw : 1);
    x86::pack_panels(from, p.ldw, p.weight_transposed ? Stored::by_outer : Stored::by_inner,
                     std::min(kColumns, cols - col), p.inner, to + col / kPanel * panel_bytes);
  });
}

// Whether a result is so large that nobody finds it in the caches, and consists of whole lines.
bool streams(const void* out, int64_t ld, int64_t rows) {
  constexpr int64_t kLarge = 4 << 20, kLine = 64;
  const int64_t row_bytes = ld * static_cast<int64_t>(sizeof(bf16));
  return reinterpret_cast<uintptr_t>(out) % kLine == 0 && row_bytes % kLine == 0 &&
         rows * row_bytes > kLarge;
}

// Packs as many columns as the caches of all cores keep, and multiplies all rows with them: groups
// of rows that stay in the second cache, and pieces of the columns where groups are few.
template <class Out>
void multiply_packed(const RowProduct<bf16, Out>& p, int64_t rows, int64_t cols) {
  constexpr int64_t kPackedMost = 4 << 20, kRowsMost = 1 << 20;  // bytes
  constexpr int64_t kLowest = 256, kHighest = 512, kTasks = 8, kLeastColumns = 128;
  const auto panel_bytes = static_cast<int64_t>(packed(kPanel, p.inner));
  const int64_t together =
      std::min(round_up(cols, kPanel), std::max<int64_t>(1, kPackedMost / panel_bytes) * kPanel);
  const int64_t height = std::clamp(kRowsMost / (2 * p.inner) / kPanel * kPanel, kLowest, kHighest);
  const auto block = allocate_block(packed(together, p.inner));
  auto* const panels = static_cast<std::byte*>(block.get());
  for (int64_t first = 0; first < cols; first += together) {
    const int64_t count = std::min(together, cols - first);
    pack_weight(p, first, count, panel_bytes, panels);
    const int64_t pieces = ceil_div(kTasks, ceil_div(rows, height));
    const int64_t width = std::max(round_up(ceil_div(count, pieces), kPanel), kLeastColumns);
    const PackedRows<Out> packed_rows{p, panels, first, panel_bytes,
                                      !p.accumulate && streams(p.out, p.ld_out, rows)};
    for_tiles(rows, count, height, width, [&](const Tile& t) { packed_rows.multiply(t); });
  }
}

// The inner size in parts of which many columns can be packed.
void multiply_deep(RowProduct<bf16, float> p, int64_t rows, int64_t cols) {
  const int64_t last = p.inner;
  for (int64_t k = 0; k < last; k += kPackedDepth) {
    p.inner = std::min(kPackedDepth, last - k);
    multiply_packed(p, rows, cols);
    p.in += p.inner;
    p.weight += p.weight_transposed ? p.inner : p.inner * p.ldw;
    p.bias = nullptr;
    p.accumulate = true;
  }
}

}  // namespace

void tile_row_product(const RowProduct<bf16, float>& p, int64_t rows, int64_t cols) {
  multiply_deep(p, rows, cols);
}

void tile_row_product(const RowProduct<bf16, bf16>& p, int64_t rows, int64_t cols) {
  if (p.inner <= kPackedDepth) return multiply_packed(p, rows, cols);
  const auto block = allocate_block(
      checked_mul(checked_mul(narrow<size_t>(rows, "matrix product"),
                              narrow<size_t>(cols, "matrix product"), "matrix product"),
                  sizeof(float), "matrix product"));
  float* const sums = static_cast<float*>(block.get());
  multiply_deep({.in = p.in,
                 .ld_in = p.ld_in,
                 .inner = p.inner,
                 .weight = p.weight,
                 .ldw = p.ldw,
                 .weight_transposed = p.weight_transposed,
                 .bias = p.bias,
                 .out = sums,
                 .ld_out = cols,
                 .accumulate = false},
                rows, cols);
  parallel_ranges(rows, kPanel, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const float* const from = sums + r * cols;
      bf16* const to = p.out + r * p.ld_out;
      for (int64_t c = 0; c < cols; ++c)
        to[c] = bf16(p.accumulate ? static_cast<float>(to[c]) + from[c] : from[c]);
    }
  });
}

// Each task packs what it reads, some rows at a time.
void tile_dw(const bf16* dy, int64_t lddy, const bf16* x, int64_t ldx, float* dw, int64_t lddw,
             int64_t M, int64_t N, int64_t K, bool accumulate) {
  for_weight_tasks(M, N, K, dw, lddw, accumulate, [&](const WeightTask& task) {
    const Tile& t = task.tile;
    const int64_t depth = depth_of(task.last - task.first);
    auto* const left = static_cast<bf16*>(
        thread_scratch(kScratchInput, static_cast<size_t>(t.rows * depth) * sizeof(bf16)));
    auto* const right =
        static_cast<std::byte*>(thread_scratch(kScratchOutput, packed(t.cols, depth)));
    for (int64_t m = task.first; m < task.last; m += depth) {
      const int64_t count = std::min(depth, task.last - m);
      const auto panel_bytes = static_cast<int64_t>(packed(kPanel, count));
      x86::transpose(dy + m * lddy + t.row, lddy, count, t.rows, left, depth);
      x86::pack_panels(x + m * ldx + t.col, ldx, Stored::by_inner, t.cols, count, right);
      for (int64_t col = 0; col < t.cols; col += kStaying) {
        x86::multiply({.left = left,
                       .ld_left = depth,
                       .right = right + col / kPanel * panel_bytes,
                       .panel_bytes = panel_bytes,
                       .rows = t.rows,
                       .cols = std::min(kStaying, t.cols - col),
                       .inner = round_up(count, kPanel),
                       .sums = task.to + col,
                       .ld_sums = task.ld,
                       .add = task.add || m > task.first});
      }
    }
  });
}

}  // namespace rapt::kernels
