// The gradient of a bias: sums of columns.
#include <algorithm>

#include "rapt/base/thread_pool.h"
#include "rapt/kernels/matmul.h"
#include "rapt/kernels/matmul_plan.h"

namespace rapt::kernels {
namespace {

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
      for (int64_t r = m; r < std::min(M, m + kRows); ++r) {
        const In* row = dy + r * lddy + from;
        for (int64_t n = 0; n < width; ++n) part[n] += static_cast<Sum>(row[n]);
      }
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
