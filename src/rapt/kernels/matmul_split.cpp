#include "rapt/kernels/matmul_split.h"

#include <algorithm>
#include <atomic>

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

  void multiply(const void* left, const void* right, bool split) const {
    if (split) {
      x86::multiply_packed(left, right, product.m, product.n, product.k, kExactParts, bias, c,
                           product.ldc, product.accumulate);
    } else {
      onednn::multiply(product, a, b, bias, c);
    }
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

// The weight is packed once, by all threads; each task packs its own rows.
void split_row_product(const float* in, int64_t ld_in, const float* w, int64_t ldw, bool transposed,
                       const float* bias, float* out, int64_t ld_out, int64_t rows, int64_t cols,
                       int64_t inner, bool accumulate) {
  constexpr int64_t kTasks = 8, kLeastColumns = 128;
  const int64_t depth = inner_block(kRowChunk, inner), panels = ceil_div(cols, kPanel);
  const auto panel_bytes = [&](int64_t k) {
    return static_cast<int64_t>(x86::packed_bytes(kPanel, std::min(depth, inner - k), kExactParts));
  };
  // Block by block of the inner size, so that a task reads what it needs in one stretch.
  char* const packed = static_cast<char*>(thread_scratch(
      kScratchPartial, x86::packed_bytes(cols, round_up(inner, kPanel), kExactParts)));
  std::atomic<bool> weight_splits = true;
  parallel_for(ceil_div(inner, depth) * panels, [&](int64_t task) {
    const int64_t k = task / panels * depth, col = task % panels * kPanel;
    char* const to =
        packed + x86::packed_bytes(cols, k, kExactParts) + task % panels * panel_bytes(k);
    const float* const from = w + (transposed ? col * ldw + k : k * ldw + col);
    if (!x86::pack_right(from, ldw, transposed ? Stored::by_outer : Stored::by_inner,
                         std::min(kPanel, cols - col), std::min(depth, inner - k), kExactParts,
                         to)) {
      weight_splits = false;
    }
  });
  const int64_t pieces = ceil_div(kTasks, ceil_div(rows, kRowChunk));
  const int64_t width = std::max(round_up(ceil_div(cols, pieces), kPanel), kLeastColumns);
  for_tiles(rows, cols, kRowChunk, width, [&](const Tile& t) {
    void* const left = thread_scratch(kScratchInput, x86::packed_bytes(t.rows, depth, kExactParts));
    for (int64_t k = 0; k < inner; k += depth) {
      const int64_t count = std::min(depth, inner - k);
      const float* const from = in + t.row * ld_in + k;
      const bool split =
          x86::pack_left(from, ld_in, Stored::by_outer, t.rows, count, kExactParts, left) &&
          weight_splits;
      const Block block{{.m = t.rows,
                         .n = t.cols,
                         .k = count,
                         .lda = ld_in,
                         .ldb = ldw,
                         .ldc = ld_out,
                         .b_transposed = transposed,
                         .bias = bias != nullptr && k == 0,
                         .accumulate = accumulate || k > 0},
                        from,
                        w + (transposed ? t.col * ldw + k : k * ldw + t.col),
                        bias != nullptr && k == 0 ? bias + t.col : nullptr,
                        out + t.row * ld_out + t.col};
      block.multiply(
          left, packed + x86::packed_bytes(cols, k, kExactParts) + t.col / kPanel * panel_bytes(k),
          split);
    }
  });
}

// Each task packs what it reads, a slice of rows at a time.
void split_dw(const float* dy, int64_t lddy, const float* x, int64_t ldx, float* dw, int64_t lddw,
              int64_t M, int64_t N, int64_t K, bool accumulate) {
  for_weight_tasks(M, N, K, dw, lddw, accumulate, [&](const WeightTask& task) {
    const Tile& t = task.tile;
    const int64_t depth = inner_block(t.rows + t.cols, task.last - task.first);
    void* const left = thread_scratch(kScratchInput, x86::packed_bytes(t.rows, depth, kExactParts));
    void* const right =
        thread_scratch(kScratchOutput, x86::packed_bytes(t.cols, depth, kExactParts));
    for (int64_t m = task.first; m < task.last; m += depth) {
      const int64_t count = std::min(depth, task.last - m);
      const float *const a = dy + m * lddy + t.row, *const b = x + m * ldx + t.col;
      bool split = x86::pack_left(a, lddy, Stored::by_inner, t.rows, count, kExactParts, left);
      split &= x86::pack_right(b, ldx, Stored::by_inner, t.cols, count, kExactParts, right);
      const Block block{{.m = t.rows,
                         .n = t.cols,
                         .k = count,
                         .lda = lddy,
                         .ldb = ldx,
                         .ldc = task.ld,
                         .a_transposed = true,
                         .accumulate = task.add || m > task.first},
                        a,
                        b,
                        nullptr,
                        task.to};
      block.multiply(left, right, split);
    }
  });
}

}  // namespace rapt::kernels
