#include "rapt/kernels/matmul_bf16_tiles.h"

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "rapt/base/check.h"
#include "rapt/base/checked.h"
#include "rapt/base/memory.h"
#include "rapt/kernels/matmul_plan.h"
#include "rapt/kernels/matmul_split.h"
#include "rapt/kernels/x86/bf16_tiles.h"
#include "rapt/kernels/x86/streamed_tiles.h"

namespace rapt::kernels {
namespace {

using x86::kDeepest;
using x86::kPanel;
using x86::Stored;

// Inner numbers of a weight that are packed at a time.
constexpr int64_t kPackedDepth = kActivatedMost;
constexpr int64_t kStaying = 256;  // columns whose panels stay in the second cache, kDeepest deep

// Tokens that a gradient of a weight sums at a time: beside its sums they stay in the second cache.
constexpr int64_t kTokensTogether = 384;

size_t packed(int64_t cols, int64_t inner) { return x86::packed_bytes(cols, inner, 1); }

// The inner size in equal parts, none deeper than tiles take.
int64_t depth_of(int64_t inner, int64_t most = kDeepest) {
  return round_up(ceil_div(inner, ceil_div(inner, most)), kPanel);
}

// Whether a result is so large that nobody finds it in the caches, and consists of whole lines.
template <class Out>
bool streams(const Out* out, int64_t ld, int64_t rows) {
  constexpr int64_t kLarge = 4 << 20, kLine = 64;
  const int64_t row_bytes = ld * static_cast<int64_t>(sizeof(Out));
  return reinterpret_cast<uintptr_t>(out) % kLine == 0 && row_bytes % kLine == 0 &&
         rows * row_bytes > kLarge;
}

// A product of rows, piece by piece.
template <class Out>
struct Rows {
  static constexpr bool kRounds = std::is_same_v<Out, bf16>;

  const RowProduct<bf16, Out>& p;
  const ActivatedEnd* end = nullptr;
  bool stream;
  int64_t depth = depth_of(p.inner);

  // Sums that are rounded wait for the last part of the inner size.
  float* waiting(int64_t rows) const {
    return kRounds && depth < p.inner ? float_scratch(kScratchOutput, rows, kStaying) : nullptr;
  }

  // The part of the inner size that begins at k, of up to kStaying columns; `right` has its panels.
  void multiply(const Tile& t, int64_t k, const std::byte* right, int64_t panel_bytes,
                float* sums) const {
    x86::TileProduct part{.left = p.in + t.row * p.ld_in + k,
                          .ld_left = p.ld_in,
                          .right = right,
                          .panel_bytes = panel_bytes,
                          .rows = t.rows,
                          .cols = t.cols,
                          .inner = std::min(depth, p.inner - k),
                          .sums = sums,
                          .ld_sums = kStaying,
                          .add = k > 0,
                          .bias = p.bias == nullptr || k > 0 ? nullptr : p.bias + t.col};
    const int64_t at = t.row * p.ld_out + t.col;
    if constexpr (!kRounds) {
      part.sums = p.out + at;
      part.ld_sums = p.ld_out;
      part.add = part.add || p.accumulate;
      part.stream = stream && depth >= p.inner;
    } else if (k + depth >= p.inner) {
      part.out = p.out == nullptr ? nullptr : p.out + at;
      part.ld_out = p.ld_out;
      part.accumulate = p.accumulate;
      part.stream = stream;
      if (end != nullptr) activate(part, at);
    }
    x86::multiply(part);
  }

  void activate(x86::TileProduct& part, int64_t at) const {
    part.activation = end->f;
    part.gradient = end->gradient;
    part.kept = end->kept == nullptr ? nullptr : end->kept + at;
    part.result = end->result == nullptr ? nullptr : end->result + at;
  }

  // Packs some columns of the weight, and of the inner size what begins at k.
  void pack(int64_t col, int64_t cols, int64_t k, int64_t inner, std::byte* to) const {
    const bool by_outer = p.weight_transposed;
    const bf16* const from = p.weight + (by_outer ? col * p.ldw + k : k * p.ldw + col);
    x86::pack_panels(from, p.ldw, by_outer ? Stored::by_outer : Stored::by_inner, cols, inner, to);
  }
};

// Few rows: each task packs what it reads, which stays in its second cache.
template <class Out>
void multiply_few(const Rows<Out>& product, int64_t rows, int64_t cols) {
  constexpr int64_t kTasks = 8;
  const int64_t width = std::min(kStaying, round_up(ceil_div(cols, kTasks), kPanel));
  const int64_t inner = product.p.inner, depth = product.depth;
  parallel_for(ceil_div(cols, width), [&](int64_t task) {
    const Tile t{0, rows, task * width, std::min(width, cols - task * width)};
    float* const sums = product.waiting(rows);
    auto* const panels =
        static_cast<std::byte*>(thread_scratch(kScratchInput, packed(width, depth)));
    for (int64_t k = 0; k < inner; k += depth) {
      const int64_t count = std::min(depth, inner - k);
      product.pack(t.col, t.cols, k, count, panels);
      product.multiply(t, k, panels, static_cast<int64_t>(packed(kPanel, count)), sums);
    }
  });
}

// Packs as many columns as the caches of all cores keep, and multiplies all rows with them: groups
// of rows that stay in the second cache, and pieces of the columns where groups are few.
template <class Out>
void multiply_many(const Rows<Out>& product, int64_t rows, int64_t cols, int64_t height) {
  constexpr int64_t kPackedMost = 4 << 20;  // bytes
  constexpr int64_t kTasks = 8, kLeastColumns = 128, kPackedTogether = 4 * kPanel;
  const int64_t inner = product.p.inner;
  const auto panel_bytes = static_cast<int64_t>(packed(kPanel, inner));
  const int64_t together =
      std::min(round_up(cols, kPanel), std::max<int64_t>(1, kPackedMost / panel_bytes) * kPanel);
  const auto block = allocate_block(packed(together, inner));
  const auto panels = [&](int64_t col) {
    return static_cast<std::byte*>(block.get()) + col / kPanel * panel_bytes;
  };
  for (int64_t first = 0; first < cols; first += together) {
    const int64_t count = std::min(together, cols - first);
    parallel_for(ceil_div(count, kPackedTogether), [&](int64_t task) {
      const int64_t col = task * kPackedTogether;
      product.pack(first + col, std::min(kPackedTogether, count - col), 0, inner, panels(col));
    });
    const int64_t pieces = ceil_div(kTasks, ceil_div(rows, height));
    const int64_t width = std::max(round_up(ceil_div(count, pieces), kPanel), kLeastColumns);
    for_tiles(rows, count, height, width, [&](const Tile& t) {
      float* const sums = product.waiting(t.rows);
      for (int64_t col = t.col; col < t.col + t.cols; col += kStaying) {
        const Tile piece{t.row, t.rows, first + col, std::min(kStaying, t.col + t.cols - col)};
        for (int64_t k = 0; k < inner; k += product.depth)
          product.multiply(piece, k, panels(col) + packed(kPanel, k), panel_bytes, sums);
      }
    });
  }
}

template <class Out>
void multiply_packed(const Rows<Out>& product, int64_t rows, int64_t cols) {
  constexpr int64_t kRowsMost = 1 << 20;  // bytes of a group of rows
  constexpr int64_t kLowest = 256, kHighest = 512;
  if (rows <= kHighest) return multiply_few(product, rows, cols);
  const int64_t height = kRowsMost / (2 * product.p.inner) / kPanel * kPanel;
  multiply_many(product, rows, cols, std::clamp(height, kLowest, kHighest));
}

template <class Out>
void multiply_packed(const RowProduct<bf16, Out>& p, int64_t rows, int64_t cols) {
  const bool stream = !p.accumulate && streams(p.out, p.ld_out, rows);
  multiply_packed(Rows<Out>{.p = p, .stream = stream}, rows, cols);
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

// Weights are the left operand, which is read as it lies; the rows of x are the right one, and each
// has its own column of sums.
template <class Out>
void multiply_independent(const bf16* x, int64_t ldx, const bf16* w, int64_t ldw, const float* bias,
                          Out* y, int64_t ldy, int64_t M, int64_t N, int64_t K) {
  constexpr int64_t kMostRows = 512, kPackedMost = 1 << 20, kTasks = 8, kMostOutputs = 512;
  constexpr int64_t kMostSums = 1 << 14, kMostTogether = 128;
  const int64_t depth = depth_of(K), panel_bytes = static_cast<int64_t>(packed(kPanel, K));
  const int64_t together = std::clamp(kPackedMost / panel_bytes * kPanel, kPanel, kMostRows);
  const int64_t outputs = std::min(round_up(ceil_div(N, kTasks), kPanel), kMostOutputs);
  for (int64_t m = 0; m < M; m += together) {
    const int64_t rows = std::min(together, M - m), padded = round_up(rows, kPanel);
    const int64_t height = std::min(kMostTogether, kMostSums / padded / kPanel * kPanel);
    auto* const right = static_cast<std::byte*>(thread_scratch(kScratchInput, packed(padded, K)));
    parallel_for(padded / kPanel, [&](int64_t p) {
      const int64_t row = p * kPanel;
      x86::pack_panels(x + (m + row) * ldx, ldx, Stored::by_outer, std::min(kPanel, rows - row), K,
                       right + p * panel_bytes);
    });
    parallel_for(ceil_div(N, outputs), [&](int64_t task) {
      float* const sums = float_scratch(kScratchPartial, height, padded);
      const int64_t end = std::min(N, (task + 1) * outputs);
      for (int64_t n = task * outputs; n < end; n += height) {
        const int64_t count = std::min(height, end - n);
        for (int64_t k = 0; k < K; k += depth) {
          x86::multiply({.left = w + n * ldw + k,
                         .ld_left = ldw,
                         .right = right + packed(kPanel, k),
                         .panel_bytes = panel_bytes,
                         .rows = count,
                         .cols = padded,
                         .inner = std::min(depth, K - k),
                         .sums = sums,
                         .ld_sums = padded,
                         .add = k > 0});
        }
        const float* const some = bias == nullptr ? nullptr : bias + n;
        Out* const to = y + m * ldy + n;
        if constexpr (std::is_same_v<Out, float>) {
          x86::turn(sums, padded, count, rows, some, to, ldy);
        } else {
          float* const turned = float_scratch(kScratchOutput, rows, height);
          x86::turn(sums, padded, count, rows, some, turned, height);
          for (int64_t r = 0; r < rows; ++r) {
            for (int64_t c = 0; c < count; ++c) to[r * ldy + c] = bf16(turned[r * height + c]);
          }
        }
      }
    });
  }
}

}  // namespace

void tile_independent(const bf16* x, int64_t ldx, const bf16* w, int64_t ldw, const float* bias,
                      bf16* y, int64_t ldy, int64_t M, int64_t N, int64_t K) {
  multiply_independent(x, ldx, w, ldw, bias, y, ldy, M, N, K);
}
void tile_independent(const bf16* x, int64_t ldx, const bf16* w, int64_t ldw, const float* bias,
                      float* y, int64_t ldy, int64_t M, int64_t N, int64_t K) {
  multiply_independent(x, ldx, w, ldw, bias, y, ldy, M, N, K);
}

bool takes_tiles(int64_t rows) { return rows > kFewRows && splits_products(); }

void tile_row_product(const RowProduct<bf16, bf16>& p, const ActivatedEnd& end, int64_t rows,
                      int64_t cols) {
  RAPT_ASSERT(p.inner <= kActivatedMost && !p.accumulate);
  const bool stream = (p.out == nullptr || streams(p.out, p.ld_out, rows)) &&
                      (end.gradient || streams(end.result, p.ld_out, rows));
  multiply_packed(Rows<bf16>{.p = p, .end = &end, .stream = stream}, rows, cols);
}

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
  const bool large = streams(dw, lddw, N);
  for_weight_tasks(M, N, K, dw, lddw, accumulate, [&](const WeightTask& task) {
    const Tile& t = task.tile;
    const int64_t depth = depth_of(task.last - task.first, kTokensTogether);
    const bool stream = large && !task.add && depth >= task.last - task.first;
    void* const left = thread_scratch(kScratchInput, packed(t.rows, depth));
    auto* const right =
        static_cast<std::byte*>(thread_scratch(kScratchOutput, packed(t.cols, depth)));
    for (int64_t m = task.first; m < task.last; m += depth) {
      const int64_t count = std::min(depth, task.last - m);
      const auto panel_bytes = static_cast<int64_t>(packed(kPanel, count));
      x86::pack_turned(dy + m * lddy + t.row, lddy, t.rows, count, left);
      x86::pack_panels(x + m * ldx + t.col, ldx, Stored::by_inner, t.cols, count, right);
      for (int64_t col = 0; col < t.cols; col += kStaying) {
        x86::multiply({.packed_left = left,
                       .right = right + col / kPanel * panel_bytes,
                       .panel_bytes = panel_bytes,
                       .rows = t.rows,
                       .cols = std::min(kStaying, t.cols - col),
                       .inner = count,
                       .sums = task.to + col,
                       .ld_sums = task.ld,
                       .add = task.add || m > task.first,
                       .stream = stream});
      }
    }
  });
}

}  // namespace rapt::kernels
