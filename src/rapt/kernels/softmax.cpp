#include "rapt/kernels/softmax.h"

#include <cmath>

#include "rapt/kernels/reference_softmax.h"
#include "rapt/kernels/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rapt/kernels/softmax.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "rapt/kernels/row_sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels::HWY_NAMESPACE {
namespace {

void SoftmaxRows(const float* x, int64_t ldx, float* y, int64_t ldy, int64_t rows, int64_t cols) {
  const hn::ScalableTag<float> d;
  for (int64_t r = 0; r < rows; ++r, x += ldx, y += ldy) {
    const float total = RowExpSum(x, RowShift(x, cols), y, cols);
    const auto factor = hn::Set(d, total == 0 ? 0.0f : 1 / total);
    MapRow(y, y, cols, [=](auto, auto e) HWY_ATTR { return hn::Mul(e, factor); });
  }
}

void SoftmaxGradRows(const float* y, int64_t ldy, const float* dy, int64_t lddy, float* dx,
                     int64_t lddx, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, y += ldy, dy += lddy, dx += lddx) {
    const float dot = RowSum(cols, [=](auto d, int64_t i, int64_t count) HWY_ATTR {
      return hn::Mul(LoadUpTo(d, y + i, count), LoadUpTo(d, dy + i, count));
    });
    MapRow(y, dy, dx, cols, [=](auto d, auto p, auto g) HWY_ATTR {
      return hn::Mul(p, hn::Sub(g, hn::Set(d, dot)));
    });
  }
}

void LogSoftmaxRows(const float* x, int64_t ldx, float* y, int64_t ldy, int64_t rows,
                    int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, x += ldx, y += ldy) {
    const float shift = RowShift(x, cols);
    const float total = RowExpSum(x, shift, nullptr, cols);
    const float log_total = total == 0 ? 0.0f : std::log(total);
    MapRow(x, y, cols, [=](auto d, auto v) HWY_ATTR {
      return hn::Sub(hn::Sub(v, hn::Set(d, shift)), hn::Set(d, log_total));
    });
  }
}

void ArgmaxRows(const float* x, int64_t ldx, int32_t* index, int64_t rows, int64_t cols) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = LaneCount(d);
  for (int64_t r = 0; r < rows; ++r, x += ldx) {
    const auto largest = hn::Set(d, RowMax(x, cols));
    int64_t found = 0;
    for (int64_t i = 0; i < cols; i += lanes) {
      const int64_t count = std::min(lanes, cols - i);
      const auto equal = hn::Eq(LoadUpTo(d, x + i, count), largest);
      const intptr_t first = hn::FindFirstTrue(d, equal);
      if (first >= 0 && first < count) {
        found = i + first;
        break;
      }
    }
    index[r] = static_cast<int32_t>(found);
  }
}

}  // namespace
}  // namespace rapt::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rapt::kernels {

HWY_EXPORT(SoftmaxRows);
HWY_EXPORT(SoftmaxGradRows);
HWY_EXPORT(LogSoftmaxRows);
HWY_EXPORT(ArgmaxRows);

void softmax(const float* x, int64_t ldx, float* y, int64_t ldy, int64_t rows, int64_t cols) {
  parallel_ranges(rows, rows_per_chunk(cols), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(SoftmaxRows)
    (x + begin * ldx, ldx, y + begin * ldy, ldy, end - begin, cols);
  });
}

void softmax(const double* x, int64_t ldx, double* y, int64_t ldy, int64_t rows, int64_t cols) {
  parallel_ranges(rows, rows_per_chunk(cols), [&](int64_t begin, int64_t end) {
    reference::softmax(x + begin * ldx, ldx, y + begin * ldy, ldy, end - begin, cols);
  });
}

void softmax_grad(const float* y, int64_t ldy, const float* dy, int64_t lddy, float* dx,
                  int64_t lddx, int64_t rows, int64_t cols) {
  parallel_ranges(rows, rows_per_chunk(cols), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(SoftmaxGradRows)
    (y + begin * ldy, ldy, dy + begin * lddy, lddy, dx + begin * lddx, lddx, end - begin, cols);
  });
}

void softmax_grad(const double* y, int64_t ldy, const double* dy, int64_t lddy, double* dx,
                  int64_t lddx, int64_t rows, int64_t cols) {
  parallel_ranges(rows, rows_per_chunk(cols), [&](int64_t begin, int64_t end) {
    reference::softmax_grad(y + begin * ldy, ldy, dy + begin * lddy, lddy, dx + begin * lddx, lddx,
                            end - begin, cols);
  });
}

void log_softmax(const float* x, int64_t ldx, float* y, int64_t ldy, int64_t rows, int64_t cols) {
  parallel_ranges(rows, rows_per_chunk(cols), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(LogSoftmaxRows)
    (x + begin * ldx, ldx, y + begin * ldy, ldy, end - begin, cols);
  });
}

void log_softmax(const double* x, int64_t ldx, double* y, int64_t ldy, int64_t rows, int64_t cols) {
  parallel_ranges(rows, rows_per_chunk(cols), [&](int64_t begin, int64_t end) {
    reference::log_softmax(x + begin * ldx, ldx, y + begin * ldy, ldy, end - begin, cols);
  });
}

void argmax(const float* x, int64_t ldx, int32_t* index, int64_t rows, int64_t cols) {
  parallel_ranges(rows, rows_per_chunk(cols), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(ArgmaxRows)(x + begin * ldx, ldx, index + begin, end - begin, cols);
  });
}

void argmax(const double* x, int64_t ldx, int32_t* index, int64_t rows, int64_t cols) {
  parallel_ranges(rows, rows_per_chunk(cols), [&](int64_t begin, int64_t end) {
    reference::argmax(x + begin * ldx, ldx, index + begin, end - begin, cols);
  });
}

}  // namespace rapt::kernels
#endif
