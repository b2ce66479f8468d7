// The gradient of a bias: sums of columns.
#include <algorithm>

#include "rapt/base/thread_pool.h"
#include "rapt/kernels/matmul.h"
#include "rapt/kernels/matmul_plan.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rapt/kernels/matmul_bias.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "rapt/kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels::HWY_NAMESPACE {
namespace {

// sums (cols) += the columns of M rows.
template <class T>
void AddRows(const T* dy, int64_t lddy, int64_t M, float* sums, int64_t cols) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = LaneCount(d);
  for (int64_t m = 0; m < M; ++m, dy += lddy) {
    for (int64_t i = 0; i < cols; i += lanes) {
      const int64_t count = std::min(lanes, cols - i);
      StoreUpTo(hn::Add(LoadUpTo(d, sums + i, count), LoadUpTo(d, dy + i, count)), d, sums + i,
                count);
    }
  }
}

constexpr auto& AddRowsF32 = AddRows<float>;
constexpr auto& AddRowsBf16 = AddRows<bf16>;

}  // namespace
}  // namespace rapt::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rapt::kernels {
namespace {

HWY_EXPORT(AddRowsF32);
HWY_EXPORT(AddRowsBf16);

void add_rows(const float* dy, int64_t lddy, int64_t M, float* sums, int64_t cols) {
  HWY_DYNAMIC_DISPATCH(AddRowsF32)(dy, lddy, M, sums, cols);
}
void add_rows(const bf16* dy, int64_t lddy, int64_t M, float* sums, int64_t cols) {
  HWY_DYNAMIC_DISPATCH(AddRowsBf16)(dy, lddy, M, sums, cols);
}
void add_rows(const double* dy, int64_t lddy, int64_t M, double* sums, int64_t cols) {
  for (int64_t m = 0; m < M; ++m, dy += lddy) {
    for (int64_t n = 0; n < cols; ++n) sums[n] += dy[n];
  }
}

// Tasks are columns alone, so that each sum is taken in the order of the rows.
template <class In, class Sum>
void column_sums(const In* dy, int64_t lddy, Sum* db, int64_t M, int64_t N, bool accumulate) {
  constexpr int64_t kColumns = 256, kRows = 64;
  parallel_for(ceil_div(N, kColumns), [&](int64_t task) {
    const int64_t from = task * kColumns, width = std::min(kColumns, N - from);
    // Blocks of rows are summed apart: the error of one long f32 sum grows with its length.
    Sum total[kColumns] = {};
    for (int64_t m = 0; m < M; m += kRows) {
      Sum part[kColumns] = {};
      add_rows(dy + m * lddy + from, lddy, std::min(kRows, M - m), part, width);
      for (int64_t n = 0; n < width; ++n) total[n] += part[n];
    }
    for (int64_t n = 0; n < width; ++n)
      db[from + n] = accumulate ? db[from + n] + total[n] : total[n];
  });
}

}  // namespace

void linear_db(const float* dy, int64_t lddy, float* db, int64_t M, int64_t N, bool accumulate) {
  column_sums(dy, lddy, db, M, N, accumulate);
}
void linear_db(const double* dy, int64_t lddy, double* db, int64_t M, int64_t N, bool accumulate) {
  column_sums(dy, lddy, db, M, N, accumulate);
}
void linear_db(const bf16* dy, int64_t lddy, float* db, int64_t M, int64_t N, bool accumulate) {
  column_sums(dy, lddy, db, M, N, accumulate);
}

}  // namespace rapt::kernels
#endif
