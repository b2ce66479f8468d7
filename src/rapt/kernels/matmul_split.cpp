#include "rapt/kernels/matmul_split.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "rapt/base/cpu.h"
#include "rapt/base/memory.h"
#include "rapt/kernels/matmul_own.h"
#include "rapt/kernels/matmul_plan.h"
#include "rapt/kernels/matmul_tile.h"
#include "rapt/kernels/x86/split_tiles.h"
#include "rapt/kernels/x86/streamed_tiles.h"

namespace rapt::kernels {
namespace {

using x86::kExactParts;
using x86::kPanel;
using x86::Stored;

// Bytes of packed operands that a task keeps in its cache; of rows that all panels of a weight
// meet.
constexpr int64_t kPackedMost = 1 << 20, kTurnedMost = 3 << 19;

// Blocks of the inner size such that `outer` rows of one stay in the cache.
int64_t inner_block(int64_t outer, int64_t inner) {
  const int64_t most = std::max<int64_t>(
      kPanel,
      kPackedMost / static_cast<int64_t>(x86::packed_bytes(outer, 1, kExactParts)) * kPanel);
  return round_up(ceil_div(inner, ceil_div(inner, most)), kPanel);
}

}  // namespace

bool splits_products() { return active_isa() >= Isa::amx; }

namespace {

// What a task computes, some rows and columns, from rows that it has packed: panel by panel, each
// panel of the weight packed while the products of the one before it run.
struct PanelLoop {
  RowProduct<float, float> p;  // of the task's first row, column and inner number
  int64_t rows, cols;
  const void* left;
  std::byte* panels[2];

  // By oneDNN.
  void multiply_plain(int64_t col, int64_t count) const {
    p.multiply({0, rows, col, count}, p.in, p.ld_in, p.out + col, p.ld_out, p.accumulate);
  }

  // The panel from column `col` on; nothing behind the last.
  x86::Unpacked panel(int64_t col, void* to) const {
    const int64_t count = std::clamp<int64_t>(cols - col, 0, kPanel), first = count == 0 ? 0 : col;
    return {.from = p.weight + (p.weight_transposed ? first * p.ldw : first),
            .ld = p.ldw,
            .stored = p.weight_transposed ? Stored::by_outer : Stored::by_inner,
            .left = false,
            .outer = count,
            .inner = count == 0 ? 0 : p.inner,
            .parts = kExactParts,
            .to = to};
  }

  void run(bool left_splits) const {
    if (!left_splits) return multiply_plain(0, cols);
    bool splits = x86::pack(panel(0, panels[0]));
    for (int64_t col = 0, i = 0; col < cols; col += kPanel, i = 1 - i) {
      const int64_t count = std::min(kPanel, cols - col);
      const x86::Unpacked next = panel(col + kPanel, panels[1 - i]);
      if (splits) {
        splits = x86::multiply_while_packing({.left = left,
                                              .right = panels[i],
                                              .rows = rows,
                                              .cols = count,
                                              .inner = p.inner,
                                              .right_inner = p.inner,
                                              .c = p.out + col,
                                              .ldc = p.ld_out,
                                              .accumulate = p.accumulate,
                                              .bias = p.bias == nullptr ? nullptr : p.bias + col},
                                             {&next, 1});
      } else {
        multiply_plain(col, count);
        splits = x86::pack(next);
      }
    }
  }
};

// The part of a product from a row, a column and an inner number on.
RowProduct<float, float> part_of(const RowProduct<float, float>& p, int64_t row, int64_t col,
                                 int64_t k, int64_t count) {
  RowProduct<float, float> part = p;
  part.in += row * p.ld_in + k;
  part.inner = count;
  part.weight += p.weight_transposed ? col * p.ldw + k : k * p.ldw + col;
  part.bias = p.bias == nullptr || k > 0 ? nullptr : p.bias + col;
  part.out += row * p.ld_out + col;
  part.accumulate = p.accumulate || k > 0;
  return part;
}

}  // namespace

// Each task packs its rows, then the weight, panel by panel.
void split_row_product(const RowProduct<float, float>& p, int64_t rows, int64_t cols) {
  constexpr int64_t kTasks = 8, kLeastColumns = 128;
  const int64_t depth = inner_block(kRowChunk, p.inner);
  const int64_t pieces = ceil_div(kTasks, ceil_div(rows, kRowChunk));
  const int64_t width = std::max(round_up(ceil_div(cols, pieces), kPanel), kLeastColumns);
  const size_t panel_bytes = x86::packed_bytes(kPanel, depth, kExactParts);
  for_tiles(rows, cols, kRowChunk, width, [&](const Tile& t) {
    void* const left = thread_scratch(kScratchInput, x86::packed_bytes(t.rows, depth, kExactParts));
    std::byte* const panels =
        static_cast<std::byte*>(thread_scratch(kScratchOutput, 2 * panel_bytes));
    for (int64_t k = 0; k < p.inner; k += depth) {
      const auto part = part_of(p, t.row, t.col, k, std::min(depth, p.inner - k));
      const bool left_splits = x86::pack({.from = part.in,
                                          .ld = part.ld_in,
                                          .stored = Stored::by_outer,
                                          .left = true,
                                          .outer = t.rows,
                                          .inner = part.inner,
                                          .parts = kExactParts,
                                          .to = left});
      PanelLoop{part, t.rows, t.cols, left, {panels, panels + panel_bytes}}.run(left_splits);
    }
  });
}

namespace {

// Rows of x as the right operand of y^T = w x^T, panel by panel. A row that has a number without
// parts is packed as zeros, and multiplied alone.
class TurnedRows {
 public:
  TurnedRows(const float* x, int64_t ldx, int64_t rows, int64_t K)
      : x_(x),
        ldx_(ldx),
        rows_(rows),
        K_(K),
        panel_bytes_(x86::packed_bytes(kPanel, K, kExactParts)),
        panels_(ceil_div(rows, kPanel)),
        packed_(static_cast<std::byte*>(
            thread_scratch(kScratchInput, panel_bytes_ * static_cast<size_t>(panels_)))),
        whole_(static_cast<size_t>(panels_), 0) {
    parallel_for(panels_, [&](int64_t p) { whole_[static_cast<size_t>(p)] = pack(p, x_, ldx_); });
    for (int64_t p = 0; p < panels_; ++p) {
      if (whole_[static_cast<size_t>(p)] == 0) repack(p);
    }
  }

  const void* packed() const { return packed_; }
  int64_t padded() const { return panels_ * kPanel; }
  const std::vector<int64_t>& left_out() const { return left_out_; }

 private:
  bool pack(int64_t panel, const float* from, int64_t ld) const {
    const int64_t row = panel * kPanel;
    return pack_to(from + row * ld, ld, std::min(kPanel, rows_ - row), panel);
  }
  bool pack_to(const float* from, int64_t ld, int64_t rows, int64_t panel) const {
    return x86::pack({.from = from,
                      .ld = ld,
                      .stored = Stored::by_outer,
                      .left = false,
                      .outer = rows,
                      .inner = K_,
                      .parts = kExactParts,
                      .to = packed_ + static_cast<size_t>(panel) * panel_bytes_});
  }

  void repack(int64_t panel) {
    const int64_t first = panel * kPanel, count = std::min(kPanel, rows_ - first);
    std::vector<float> copy(static_cast<size_t>(count * K_));
    for (int64_t r = 0; r < count; ++r) {
      const float* const from = x_ + (first + r) * ldx_;
      if (pack_to(from, ldx_, 1, panel)) {
        std::copy_n(from, K_, copy.data() + r * K_);
      } else {
        left_out_.push_back(first + r);
      }
    }
    pack_to(copy.data(), K_, count, panel);
  }

  const float* const x_;
  const int64_t ldx_, rows_, K_;
  const size_t panel_bytes_;
  const int64_t panels_;
  std::byte* const packed_;
  std::vector<uint8_t> whole_;     // by panel: every number has parts
  std::vector<int64_t> left_out_;  // rows
};

}  // namespace

// Weights are the left operand, which needs no turning: each task streams its own through.
void split_linear(const float* x, int64_t ldx, const float* w, int64_t ldw, const float* bias,
                  float* y, int64_t ldy, int64_t M, int64_t N, int64_t K) {
  constexpr int64_t kMostRows = 512, kTasks = 8, kMostOutputs = 512, kMostSums = 1 << 14;
  const auto row_bytes = static_cast<int64_t>(x86::packed_bytes(kPanel, K, kExactParts)) / kPanel;
  const int64_t together = std::clamp(kTurnedMost / row_bytes / kPanel * kPanel, kPanel, kMostRows);
  const int64_t outputs = std::min(round_up(ceil_div(N, kTasks), kPanel), kMostOutputs);
  for (int64_t m = 0; m < M; m += together) {
    const int64_t rows = std::min(together, M - m);
    const TurnedRows turned(x + m * ldx, ldx, rows, K);
    const int64_t height = std::min(outputs, kMostSums / turned.padded() / kPanel * kPanel);
    float* const to = y + m * ldy;
    parallel_for(ceil_div(N, outputs), [&](int64_t task) {
      void* const packed = thread_scratch(kScratchOutput, x86::streamed_bytes(turned.padded(), K));
      float* const c = float_scratch(kScratchPartial, height, turned.padded());
      bool whole[kMostOutputs / kPanel];
      const int64_t end = std::min(N, (task + 1) * outputs);
      for (int64_t first = task * outputs; first < end; first += height) {
        x86::multiply_streamed({.left = w + first * ldw,
                                .ld = ldw,
                                .rows = std::min(height, end - first),
                                .inner = K,
                                .right = turned.packed(),
                                .cols = turned.padded(),
                                .packed = packed,
                                .c = c,
                                .ldc = turned.padded(),
                                .whole = whole});
        for (int64_t n = first; n < std::min(first + height, end); n += kPanel) {
          const int64_t count = std::min(kPanel, end - n);
          const float* const some = bias == nullptr ? nullptr : bias + n;
          if (whole[(n - first) / kPanel]) {
            x86::turn(c + (n - first) * turned.padded(), turned.padded(), count, rows, some, to + n,
                      ldy);
          } else {
            tile_linear(x + m * ldx, ldx, w + n * ldw, ldw, some, to + n, ldy, rows, count, K);
          }
        }
      }
    });
    for (const int64_t row : turned.left_out())
      own_linear(x + (m + row) * ldx, ldx, w, ldw, bias, to + row * ldy, ldy, 1, N, K);
  }
}

// Each task packs what it reads, a slice of rows at a time.
void split_dw(const float* dy, int64_t lddy, const float* x, int64_t ldx, float* dw, int64_t lddw,
              int64_t M, int64_t N, int64_t K, bool accumulate) {
  for_weight_tasks(M, N, K, dw, lddw, accumulate, [&](const WeightTask& task) {
    const Tile& t = task.tile;
    const int64_t depth = inner_block(t.rows + t.cols, task.last - task.first);
    const size_t left_bytes = x86::packed_bytes(t.rows, depth, kExactParts),
                 right_bytes = x86::packed_bytes(t.cols, depth, kExactParts);
    std::byte* const left = static_cast<std::byte*>(thread_scratch(kScratchInput, 2 * left_bytes));
    std::byte* const right =
        static_cast<std::byte*>(thread_scratch(kScratchOutput, 2 * right_bytes));
    const auto operands = [&](int64_t m, size_t place) {
      const int64_t count = std::max<int64_t>(0, std::min(depth, task.last - m));
      const int64_t row = count == 0 ? task.first : m;
      return std::array{x86::Unpacked{.from = dy + row * lddy + t.row,
                                      .ld = lddy,
                                      .stored = Stored::by_inner,
                                      .left = true,
                                      .outer = t.rows,
                                      .inner = count,
                                      .parts = kExactParts,
                                      .to = left + place * left_bytes},
                        x86::Unpacked{.from = x + row * ldx + t.col,
                                      .ld = ldx,
                                      .stored = Stored::by_inner,
                                      .left = false,
                                      .outer = t.cols,
                                      .inner = count,
                                      .parts = kExactParts,
                                      .to = right + place * right_bytes}};
    };
    const auto pack = [](const auto& both) {
      const bool left_splits = x86::pack(both[0]);
      return x86::pack(both[1]) && left_splits;
    };
    bool splits = pack(operands(task.first, 0));
    size_t place = 0;
    for (int64_t m = task.first; m < task.last; m += depth, place = 1 - place) {
      const int64_t count = std::min(depth, task.last - m);
      const bool add = task.add || m > task.first;
      const auto next = operands(m + depth, 1 - place);
      if (splits) {
        splits = x86::multiply_while_packing({.left = left + place * left_bytes,
                                              .right = right + place * right_bytes,
                                              .rows = t.rows,
                                              .cols = t.cols,
                                              .inner = count,
                                              .right_inner = count,
                                              .c = task.to,
                                              .ldc = task.ld,
                                              .accumulate = add},
                                             next);
        continue;
      }
      sum_slice(task, dy + m * lddy + t.row, lddy, x + m * ldx + t.col, ldx, count, add);
      splits = pack(next);
    }
  });
}

}  // namespace rapt::kernels
