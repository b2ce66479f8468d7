// The bf16 products: oneDNN's where the CPU multiplies bf16, else the f32 ones on converted copies.
#include <algorithm>
#include <memory>

#include "rapt/base/checked.h"
#include "rapt/base/memory.h"
#include "rapt/base/thread_pool.h"
#include "rapt/kernels/matmul.h"
#include "rapt/kernels/matmul_plan.h"
#include "rapt/kernels/onednn.h"

namespace rapt::kernels {
namespace {

using onednn::Type;

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
      for (int64_t r = begin; r < end; ++r) {
        for (int64_t c = 0; c < cols; ++c)
          data()[r * cols + c] = static_cast<float>(from[r * ld + c]);
      }
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

template <class Out>
void linear_native(const bf16* x, int64_t ldx, const bf16* w, int64_t ldw, const float* bias,
                   Out* y, int64_t ldy, int64_t M, int64_t N, int64_t K) {
  for_row_chunks(M, N, K, [&](const Tile& t) {
    onednn::multiply({.m = t.rows,
                      .n = t.cols,
                      .k = K,
                      .lda = ldx,
                      .ldb = ldw,
                      .ldc = ldy,
                      .b_transposed = true,
                      .inputs = Type::bf16,
                      .output = sizeof(Out) == sizeof(bf16) ? Type::bf16 : Type::f32,
                      .bias = bias != nullptr},
                     x + t.row * ldx, w + t.col * ldw, bias == nullptr ? nullptr : bias + t.col,
                     y + t.row * ldy + t.col);
  });
}

}  // namespace

void linear(const bf16* x, int64_t ldx, const bf16* w, int64_t ldw, const float* bias, bf16* y,
            int64_t ldy, int64_t M, int64_t N, int64_t K, RowPolicy policy) {
  if (M == 0 || N == 0) return;
  if (K != 0 && onednn::multiplies_bf16()) {
    return linear_native(x, ldx, w, ldw, bias, y, ldy, M, N, K);
  }
  const Wide result(M, N);
  linear(x, ldx, w, ldw, bias, result.data(), result.ld(), M, N, K, policy);
  store(result, y, ldy, M, N);
}

void linear(const bf16* x, int64_t ldx, const bf16* w, int64_t ldw, const float* bias, float* y,
            int64_t ldy, int64_t M, int64_t N, int64_t K, RowPolicy policy) {
  if (M == 0 || N == 0) return;
  if (K != 0 && onednn::multiplies_bf16()) {
    return linear_native(x, ldx, w, ldw, bias, y, ldy, M, N, K);
  }
  const Wide wide_x(x, ldx, M, K), wide_w(w, ldw, N, K);
  linear(wide_x.data(), wide_x.ld(), wide_w.data(), wide_w.ld(), bias, y, ldy, M, N, K, policy);
}

void linear_dx(const bf16* dy, int64_t lddy, const bf16* w, int64_t ldw, bf16* dx, int64_t lddx,
               int64_t M, int64_t N, int64_t K, bool accumulate) {
  if (M == 0 || K == 0) return;
  if (N != 0 && onednn::multiplies_bf16()) {
    return for_row_chunks(M, K, N, [&](const Tile& t) {
      onednn::multiply({.m = t.rows,
                        .n = t.cols,
                        .k = N,
                        .lda = lddy,
                        .ldb = ldw,
                        .ldc = lddx,
                        .inputs = Type::bf16,
                        .output = Type::bf16,
                        .accumulate = accumulate},
                       dy + t.row * lddy, w + t.col, nullptr, dx + t.row * lddx + t.col);
    });
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
  if (M != 0 && onednn::multiplies_bf16()) {
    return for_weight_tasks(M, N, K, dw, lddw, accumulate, [&](const WeightTask& task) {
      const Tile& t = task.tile;
      for (int64_t m = task.first; m < task.last; m += kTokenSlice) {
        onednn::multiply({.m = t.rows,
                          .n = t.cols,
                          .k = std::min(kTokenSlice, task.last - m),
                          .lda = lddy,
                          .ldb = ldx,
                          .ldc = task.ld,
                          .a_transposed = true,
                          .inputs = Type::bf16,
                          .accumulate = task.add || m > task.first},
                         dy + m * lddy + t.row, x + m * ldx + t.col, nullptr, task.to);
      }
    });
  }
  const Wide wide_dy(dy, lddy, M, N), wide_x(x, ldx, M, K);
  linear_dw(wide_dy.data(), wide_dy.ld(), wide_x.data(), wide_x.ld(), dw, lddw, M, N, K,
            accumulate);
}

}  // namespace rapt::kernels
