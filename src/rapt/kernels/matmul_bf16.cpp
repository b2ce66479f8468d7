// The bf16 products: on tiles where the CPU has them and rows are not few or are to be independent,
// on panels where it has AVX-512's dot products but no tiles, else oneDNN's where it multiplies
// bf16, else the f32 ones on converted copies.
#include <algorithm>
#include <memory>

#include "rapt/base/checked.h"
#include "rapt/base/memory.h"
#include "rapt/base/thread_pool.h"
#include "rapt/kernels/matmul.h"
#include "rapt/kernels/matmul_bf16_tiles.h"
#include "rapt/kernels/matmul_panels.h"
#include "rapt/kernels/matmul_plan.h"
#include "rapt/kernels/matmul_rows.h"
#include "rapt/kernels/matmul_split.h"
#include "rapt/kernels/matmul_tile.h"
#include "rapt/kernels/onednn.h"

namespace rapt::kernels {
namespace {

void widen(const bf16* from, int64_t ld, int64_t rows, int64_t cols, float* to) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) to[r * cols + c] = static_cast<float>(from[r * ld + c]);
  }
}

// A matrix in f32, its rows without gaps.
class Wide {
 public:
  Wide(int64_t rows, int64_t cols)
      : block_(allocate_block(checked_mul<size_t>(
            checked_mul(narrow<size_t>(rows, "matrix product"),
                        narrow<size_t>(cols, "matrix product"), "matrix product"),
            sizeof(float), "matrix product"))),
        cols_(cols) {}
  Wide(const bf16* from, int64_t ld, int64_t rows, int64_t cols) : Wide(rows, cols) {
    parallel_ranges(rows, 64, [&](int64_t begin, int64_t end) {
      widen(from + begin * ld, ld, end - begin, cols, data() + begin * cols);
    });
  }
  float* data() const { return static_cast<float*>(block_.get()); }
  int64_t ld() const { return std::max<int64_t>(cols_, 1); }

 private:
  std::shared_ptr<void> block_;
  int64_t cols_;
};

void store(const Wide& from, bf16* to, int64_t ld, int64_t rows, int64_t cols) {
  parallel_ranges(rows, 64, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t c = 0; c < cols; ++c) to[r * ld + c] = bf16(from.data()[r * from.ld() + c]);
    }
  });
}

// Rows [0, padded) of `to`: those of `from`, and zeros from `rows` on.
void copy_padded(const bf16* from, int64_t ld, int64_t rows, int64_t cols, bf16* to,
                 int64_t padded) {
  for (int64_t r = 0; r < rows; ++r) std::copy_n(from + r * ld, cols, to + r * cols);
  std::fill_n(to + rows * cols, (padded - rows) * cols, bf16());
}

template <class Out>
void multiply_rows(const RowProduct<bf16, Out>& p, int64_t rows, int64_t cols) {
  const int64_t tail = rows % kRowGrain == 0 ? 0 : rows % kRowChunk;
  multiply_whole(p, rows - tail, cols);
  if (tail > 0) multiply_tail(p, rows - tail, tail, cols);
}

// Each task converts the rows of the weight that it reads.
template <class Out>
void linear_by_pieces(const bf16* x, int64_t ldx, const bf16* w, int64_t ldw, const float* bias,
                      Out* y, int64_t ldy, int64_t M, int64_t N, int64_t K) {
  constexpr int64_t kPieceBytes = 128 << 10;
  const Wide wide(x, ldx, M, K);
  const int64_t most = std::max<int64_t>(1, kPieceBytes / static_cast<int64_t>(sizeof(float)) / K);
  const int64_t outputs = std::min(N, round_up(most, kTileOutputs));
  parallel_for(ceil_div(N, outputs), [&](int64_t task) {
    const int64_t n = task * outputs, count = std::min(outputs, N - n);
    float* const weight = float_scratch(kScratchInput, count, K);
    widen(w + n * ldw, ldw, count, K, weight);
    float* const result = float_scratch(kScratchOutput, M, count);
    tile_linear(wide.data(), wide.ld(), weight, K, bias == nullptr ? nullptr : bias + n, result,
                count, M, count, K);
    for (int64_t m = 0; m < M; ++m) {
      for (int64_t c = 0; c < count; ++c) y[m * ldy + n + c] = Out(result[m * count + c]);
    }
  });
}

// Whether linear_bf16() has a way for rows of this policy.
bool takes_bf16(RowPolicy policy) {
  return policy == RowPolicy::independent || onednn::multiplies_bf16();
}

template <class Out>
void linear_bf16(const bf16* x, int64_t ldx, const bf16* w, int64_t ldw, const float* bias, Out* y,
                 int64_t ldy, int64_t M, int64_t N, int64_t K, RowPolicy policy) {
  if (policy == RowPolicy::independent && splits_products())
    return tile_independent(x, ldx, w, ldw, bias, y, ldy, M, N, K);
  if (policy == RowPolicy::independent)
    return linear_by_pieces(x, ldx, w, ldw, bias, y, ldy, M, N, K);
  const auto rows = linear_rows(x, ldx, w, ldw, bias, y, ldy, K);
  if (takes_tiles(M)) return tile_row_product(rows, M, N);
  if (has_bf16_panels()) return panel_row_product(rows, M, N);
  multiply_rows(rows, M, N);
}

// A part of the gradient of a weight: tokens in slices, the last a multiple of kSumGrain; what is
// left is padded with zeros, so that a weight has few shapes.
void sum_tokens(const WeightTask& task, const bf16* dy, int64_t lddy, const bf16* x, int64_t ldx) {
  constexpr int64_t kSumGrain = 64;
  const Tile& t = task.tile;
  const int64_t whole = task.first + (task.last - task.first) / kSumGrain * kSumGrain;
  for (int64_t m = task.first; m < whole; m += kTokenSlice) {
    sum_slice(task, dy + m * lddy + t.row, lddy, x + m * ldx + t.col, ldx,
              std::min(kTokenSlice, whole - m), task.add || m > task.first);
  }
  if (whole == task.last) return;
  bf16* const rows = scratch_of<bf16>(kScratchInput, kSumGrain, t.rows);
  bf16* const cols = scratch_of<bf16>(kScratchOutput, kSumGrain, t.cols);
  copy_padded(dy + whole * lddy + t.row, lddy, task.last - whole, t.rows, rows, kSumGrain);
  copy_padded(x + whole * ldx + t.col, ldx, task.last - whole, t.cols, cols, kSumGrain);
  sum_slice(task, rows, t.rows, cols, t.cols, kSumGrain, task.add || whole > task.first);
}

}  // namespace

void linear(const bf16* x, int64_t ldx, const bf16* w, int64_t ldw, const float* bias, bf16* y,
            int64_t ldy, int64_t M, int64_t N, int64_t K, RowPolicy policy) {
  if (M == 0 || N == 0) return;
  if (K != 0 && takes_bf16(policy))
    return linear_bf16(x, ldx, w, ldw, bias, y, ldy, M, N, K, policy);
  const Wide result(M, N);
  linear(x, ldx, w, ldw, bias, result.data(), result.ld(), M, N, K, policy);
  store(result, y, ldy, M, N);
}

void linear(const bf16* x, int64_t ldx, const bf16* w, int64_t ldw, const float* bias, float* y,
            int64_t ldy, int64_t M, int64_t N, int64_t K, RowPolicy policy) {
  if (M == 0 || N == 0) return;
  if (K != 0 && takes_bf16(policy))
    return linear_bf16(x, ldx, w, ldw, bias, y, ldy, M, N, K, policy);
  const Wide wide_x(x, ldx, M, K), wide_w(w, ldw, N, K);
  linear(wide_x.data(), wide_x.ld(), wide_w.data(), wide_w.ld(), bias, y, ldy, M, N, K, policy);
}

void linear_dx(const bf16* dy, int64_t lddy, const bf16* w, int64_t ldw, bf16* dx, int64_t lddx,
               int64_t M, int64_t N, int64_t K, bool accumulate) {
  if (M == 0 || K == 0) return;
  if (N != 0 && onednn::multiplies_bf16()) {
    const auto rows = dx_rows(dy, lddy, w, ldw, dx, lddx, N, accumulate);
    if (takes_tiles(M)) return tile_row_product(rows, M, K);
    if (has_bf16_panels()) return panel_row_product(rows, M, K);
    return multiply_rows(rows, M, K);
  }
  const Wide wide_dy(dy, lddy, M, N), wide_w(w, ldw, N, K);
  const Wide result = accumulate ? Wide(dx, lddx, M, K) : Wide(M, K);
  linear_dx(wide_dy.data(), wide_dy.ld(), wide_w.data(), wide_w.ld(), result.data(), result.ld(), M,
            N, K, accumulate);
  store(result, dx, lddx, M, K);
}

void linear_dw(const bf16* dy, int64_t lddy, const bf16* x, int64_t ldx, float* dw, int64_t lddw,
               int64_t M, int64_t N, int64_t K, bool accumulate) {
  if (N == 0 || K == 0) return;
  if (takes_tiles(M)) return tile_dw(dy, lddy, x, ldx, dw, lddw, M, N, K, accumulate);
  if (has_bf16_panels()) {  // on which few rows are slower than their f32 copies on tiles
    if (M > kFewRows) return panel_dw(dy, lddy, x, ldx, dw, lddw, M, N, K, accumulate);
  } else if (M != 0 && onednn::multiplies_bf16()) {
    return for_weight_tasks(M, N, K, dw, lddw, accumulate,
                            [&](const WeightTask& task) { sum_tokens(task, dy, lddy, x, ldx); });
  }
  const Wide wide_dy(dy, lddy, M, N), wide_x(x, ldx, M, K);
  linear_dw(wide_dy.data(), wide_dy.ld(), wide_x.data(), wide_x.ld(), dw, lddw, M, N, K,
            accumulate);
}

}  // namespace rapt::kernels
