#include "rapt/kernels/matmul_split.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "rapt/base/cpu.h"
#include "rapt/base/memory.h"
#include "rapt/kernels/matmul_plan.h"
#include "rapt/kernels/onednn.h"
#include "rapt/kernels/x86/split_tiles.h"

namespace rapt::kernels {
namespace {

using x86::kExactParts;
using x86::kPanel;
using x86::Stored;

constexpr int64_t kPackedMost = 1 << 20;  // bytes of packed operands that a task keeps in its cache

// One result c = a b + bias, or c += a b, whose operands were packed; where a number has no parts,
// by oneDNN from what they were packed from.
struct Block {
  onednn::Product product;
  const float *a, *b;
  const float* bias;  // of the first of the sums alone
  float* c;

  // Of its columns [col, col + cols), by oneDNN.
  void multiply_plain(int64_t col, int64_t cols) const {
    onednn::Product part = product;
    part.n = cols;
    onednn::multiply(part, a, b + (product.b_transposed ? col * product.ldb : col),
                     bias == nullptr ? nullptr : bias + col, c + col);
  }
};

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

// The columns of a result that a task computes, from rows that it has packed: panel by panel, each
// panel of the weight packed while the products of the one before it run.
struct PanelLoop {
  const float* w;  // of the task's first column and inner number
  int64_t ldw;
  bool transposed;
  Block block;  // of all columns
  const void* left;
  bool left_splits;
  std::byte* panels[2];

  x86::Unpacked source(int64_t col, int64_t panel) const {
    const int64_t cols = std::clamp<int64_t>(block.product.n - col, 0, kPanel);
    return {.from = cols == 0 ? w : w + (transposed ? col * ldw : col),
            .ld = ldw,
            .stored = transposed ? Stored::by_outer : Stored::by_inner,
            .left = false,
            .outer = cols,
            .inner = cols == 0 ? 0 : block.product.k,
            .parts = kExactParts,
            .to = panels[panel]};
  }

  void run() const {
    if (!left_splits) return block.multiply_plain(0, block.product.n);
    bool splits = x86::pack(source(0, 0));
    for (int64_t col = 0, i = 0; col < block.product.n; col += kPanel, ++i) {
      const int64_t cols = std::min(kPanel, block.product.n - col);
      const x86::Unpacked next = source(col + kPanel, (i + 1) % 2);
      if (splits) {
        splits = x86::multiply_while_packing(
            {.left = left,
             .right = panels[i % 2],
             .rows = block.product.m,
             .cols = cols,
             .inner = block.product.k,
             .right_inner = block.product.k,
             .c = block.c + col,
             .ldc = block.product.ldc,
             .accumulate = block.product.accumulate,
             .bias = block.bias == nullptr ? nullptr : block.bias + col},
            {&next, 1});
      } else {
        block.multiply_plain(col, cols);
        splits = x86::pack(next);
      }
    }
  }
};

}  // namespace

// Each task packs its rows, then the weight, panel by panel.
void split_row_product(const float* in, int64_t ld_in, const float* w, int64_t ldw, bool transposed,
                       const float* bias, float* out, int64_t ld_out, int64_t rows, int64_t cols,
                       int64_t inner, bool accumulate) {
  constexpr int64_t kTasks = 8, kLeastColumns = 128;
  const int64_t depth = inner_block(kRowChunk, inner);
  const int64_t pieces = ceil_div(kTasks, ceil_div(rows, kRowChunk));
  const int64_t width = std::max(round_up(ceil_div(cols, pieces), kPanel), kLeastColumns);
  const size_t panel_bytes = x86::packed_bytes(kPanel, depth, kExactParts);
  for_tiles(rows, cols, kRowChunk, width, [&](const Tile& t) {
    void* const left = thread_scratch(kScratchInput, x86::packed_bytes(t.rows, depth, kExactParts));
    std::byte* const panels =
        static_cast<std::byte*>(thread_scratch(kScratchOutput, 2 * panel_bytes));
    for (int64_t k = 0; k < inner; k += depth) {
      const int64_t count = std::min(depth, inner - k);
      const float* const from = in + t.row * ld_in + k;
      const float* const weight = w + (transposed ? t.col * ldw + k : k * ldw + t.col);
      const bool splits = x86::pack({.from = from,
                                     .ld = ld_in,
                                     .stored = Stored::by_outer,
                                     .left = true,
                                     .outer = t.rows,
                                     .inner = count,
                                     .parts = kExactParts,
                                     .to = left});
      PanelLoop{.w = weight,
                .ldw = ldw,
                .transposed = transposed,
                .block = {{.m = t.rows,
                           .n = t.cols,
                           .k = count,
                           .lda = ld_in,
                           .ldb = ldw,
                           .ldc = ld_out,
                           .b_transposed = transposed,
                           .bias = bias != nullptr && k == 0,
                           .accumulate = accumulate || k > 0},
                          from,
                          weight,
                          bias != nullptr && k == 0 ? bias + t.col : nullptr,
                          out + t.row * ld_out + t.col},
                .left = left,
                .left_splits = splits,
                .panels = {panels, panels + panel_bytes}}
          .run();
    }
  });
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
      onednn::multiply({.m = t.rows,
                        .n = t.cols,
                        .k = count,
                        .lda = lddy,
                        .ldb = ldx,
                        .ldc = task.ld,
                        .a_transposed = true,
                        .accumulate = add},
                       dy + m * lddy + t.row, x + m * ldx + t.col, nullptr, task.to);
      splits = pack(next);
    }
  });
}

}  // namespace rapt::kernels
