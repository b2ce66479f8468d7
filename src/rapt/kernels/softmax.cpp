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

// Where exponentials of a row stand in f32: in the result itself, or in the thread's scratch.
HWY_INLINE float* Exponentials(float* y, int64_t /*cols*/) { return y; }
HWY_INLINE float* Exponentials(bf16* /*y*/, int64_t cols) { return row_scratch(cols); }

template <class T>
void SoftmaxRows(const T* x, int64_t ldx, T* y, int64_t ldy, int64_t rows, int64_t cols) {
  const hn::ScalableTag<float> d;
  for (int64_t r = 0; r < rows; ++r, x += ldx, y += ldy) {
    float* const exponentials = Exponentials(y, cols);
    const float total = RowExpSum(x, RowShift(x, cols), exponentials, cols);
    const auto factor = hn::Set(d, total == 0 ? 0.0f : 1 / total);
    MapRow(exponentials, y, cols, [=](auto, auto e) HWY_ATTR { return hn::Mul(e, factor); });
  }
}

template <class T>
void SoftmaxGradRows(const T* y, int64_t ldy, const T* dy, int64_t lddy, T* dx, int64_t lddx,
                     int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, y += ldy, dy += lddy, dx += lddx) {
    const float dot = RowSum(cols, [=](auto d, int64_t i, int64_t count) HWY_ATTR {
      return hn::Mul(LoadUpTo(d, y + i, count), LoadUpTo(d, dy + i, count));
    });
    MapRow(y, dy, dx, cols, [=](auto d, auto p, auto g) HWY_ATTR {
      return hn::Mul(p, hn::Sub(g, hn::Set(d, dot)));
    });
  }
}

template <class T>
void LogSoftmaxRows(const T* x, int64_t ldx, T* y, int64_t ldy, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, x += ldx, y += ldy) {
    const float shift = RowShift(x, cols);
    const float total = RowExpSum(x, shift, static_cast<float*>(nullptr), cols);
    const float log_total = total == 0 ? 0.0f : std::log(total);
    MapRow(x, y, cols, [=](auto d, auto v) HWY_ATTR {
      return hn::Sub(hn::Sub(v, hn::Set(d, shift)), hn::Set(d, log_total));
    });
  }
}

void LogSumExpRows(const float* x, int64_t ldx, float* sums, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, x += ldx) {
    const float shift = RowShift(x, cols);
    const float total = RowExpSum(x, shift, static_cast<float*>(nullptr), cols);
    sums[r] = total == 0 ? 0.0f : shift + std::log(total);
  }
}

int64_t FindAbove(const float* x, int64_t begin, int64_t end, float bar) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = LaneCount(d);
  const auto bars = hn::Set(d, bar);
  for (int64_t i = begin; i < end; i += lanes) {
    const int64_t count = std::min(lanes, end - i);
    const auto above = hn::Not(hn::Le(LoadPart(d, x + i, count, bars), bars));
    const intptr_t first = hn::FindFirstTrue(d, above);
    if (first >= 0) return i + first;
  }
  return end;
}

template <class T>
void ArgmaxRows(const T* x, int64_t ldx, int32_t* index, int64_t rows, int64_t cols) {
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

constexpr auto& SoftmaxRowsF32 = SoftmaxRows<float>;
constexpr auto& SoftmaxRowsBf16 = SoftmaxRows<bf16>;
constexpr auto& SoftmaxGradRowsF32 = SoftmaxGradRows<float>;
constexpr auto& SoftmaxGradRowsBf16 = SoftmaxGradRows<bf16>;
constexpr auto& LogSoftmaxRowsF32 = LogSoftmaxRows<float>;
constexpr auto& LogSoftmaxRowsBf16 = LogSoftmaxRows<bf16>;
constexpr auto& ArgmaxRowsF32 = ArgmaxRows<float>;
constexpr auto& ArgmaxRowsBf16 = ArgmaxRows<bf16>;

}  // namespace
}  // namespace rapt::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rapt::kernels {
namespace {

HWY_EXPORT(SoftmaxRowsF32);
HWY_EXPORT(SoftmaxRowsBf16);
HWY_EXPORT(SoftmaxGradRowsF32);
HWY_EXPORT(SoftmaxGradRowsBf16);
HWY_EXPORT(LogSoftmaxRowsF32);
HWY_EXPORT(LogSoftmaxRowsBf16);
HWY_EXPORT(LogSumExpRows);
HWY_EXPORT(FindAbove);
HWY_EXPORT(ArgmaxRowsF32);
HWY_EXPORT(ArgmaxRowsBf16);

// y = f(x) by rows; f(x, ldx, y, ldy, rows, cols).
template <class T, class F>
void map(const T* x, int64_t ldx, T* y, int64_t ldy, int64_t rows, int64_t cols, const F& f) {
  parallel_ranges(rows, rows_per_chunk(cols), [&](int64_t begin, int64_t end) {
    f(x + begin * ldx, ldx, y + begin * ldy, ldy, end - begin, cols);
  });
}

template <class T, class F>
void map_grad(const T* y, int64_t ldy, const T* dy, int64_t lddy, T* dx, int64_t lddx, int64_t rows,
              int64_t cols, const F& f) {
  parallel_ranges(rows, rows_per_chunk(cols), [&](int64_t begin, int64_t end) {
    f(y + begin * ldy, ldy, dy + begin * lddy, lddy, dx + begin * lddx, lddx, end - begin, cols);
  });
}

// One number a row; f(x, ldx, found, rows, cols).
template <class T, class Found, class F>
void find(const T* x, int64_t ldx, Found* found, int64_t rows, int64_t cols, const F& f) {
  parallel_ranges(rows, rows_per_chunk(cols), [&](int64_t begin, int64_t end) {
    f(x + begin * ldx, ldx, found + begin, end - begin, cols);
  });
}

}  // namespace

void softmax(const float* x, int64_t ldx, float* y, int64_t ldy, int64_t rows, int64_t cols) {
  map(x, ldx, y, ldy, rows, cols, HWY_DYNAMIC_DISPATCH(SoftmaxRowsF32));
}
void softmax_grad(const float* y, int64_t ldy, const float* dy, int64_t lddy, float* dx,
                  int64_t lddx, int64_t rows, int64_t cols) {
  map_grad(y, ldy, dy, lddy, dx, lddx, rows, cols, HWY_DYNAMIC_DISPATCH(SoftmaxGradRowsF32));
}
void log_softmax(const float* x, int64_t ldx, float* y, int64_t ldy, int64_t rows, int64_t cols) {
  map(x, ldx, y, ldy, rows, cols, HWY_DYNAMIC_DISPATCH(LogSoftmaxRowsF32));
}
void argmax(const float* x, int64_t ldx, int32_t* index, int64_t rows, int64_t cols) {
  find(x, ldx, index, rows, cols, HWY_DYNAMIC_DISPATCH(ArgmaxRowsF32));
}

void log_sum_exp(const float* x, int64_t ldx, float* sums, int64_t rows, int64_t cols) {
  find(x, ldx, sums, rows, cols, HWY_DYNAMIC_DISPATCH(LogSumExpRows));
}
int64_t find_above(const float* x, int64_t begin, int64_t end, float bar) {
  return HWY_DYNAMIC_DISPATCH(FindAbove)(x, begin, end, bar);
}

void softmax(const double* x, int64_t ldx, double* y, int64_t ldy, int64_t rows, int64_t cols) {
  map(x, ldx, y, ldy, rows, cols, reference::softmax<double>);
}
void softmax_grad(const double* y, int64_t ldy, const double* dy, int64_t lddy, double* dx,
                  int64_t lddx, int64_t rows, int64_t cols) {
  map_grad(y, ldy, dy, lddy, dx, lddx, rows, cols, reference::softmax_grad<double>);
}
void log_softmax(const double* x, int64_t ldx, double* y, int64_t ldy, int64_t rows, int64_t cols) {
  map(x, ldx, y, ldy, rows, cols, reference::log_softmax<double>);
}
void log_sum_exp(const double* x, int64_t ldx, double* sums, int64_t rows, int64_t cols) {
  find(x, ldx, sums, rows, cols, reference::log_sum_exp<double>);
}
int64_t find_above(const double* x, int64_t begin, int64_t end, double bar) {
  return reference::find_above(x, begin, end, bar);
}
void argmax(const double* x, int64_t ldx, int32_t* index, int64_t rows, int64_t cols) {
  find(x, ldx, index, rows, cols, reference::argmax<double>);
}

void softmax(const bf16* x, int64_t ldx, bf16* y, int64_t ldy, int64_t rows, int64_t cols) {
  map(x, ldx, y, ldy, rows, cols, HWY_DYNAMIC_DISPATCH(SoftmaxRowsBf16));
}
void softmax_grad(const bf16* y, int64_t ldy, const bf16* dy, int64_t lddy, bf16* dx, int64_t lddx,
                  int64_t rows, int64_t cols) {
  map_grad(y, ldy, dy, lddy, dx, lddx, rows, cols, HWY_DYNAMIC_DISPATCH(SoftmaxGradRowsBf16));
}
void log_softmax(const bf16* x, int64_t ldx, bf16* y, int64_t ldy, int64_t rows, int64_t cols) {
  map(x, ldx, y, ldy, rows, cols, HWY_DYNAMIC_DISPATCH(LogSoftmaxRowsBf16));
}
void argmax(const bf16* x, int64_t ldx, int32_t* index, int64_t rows, int64_t cols) {
  find(x, ldx, index, rows, cols, HWY_DYNAMIC_DISPATCH(ArgmaxRowsBf16));
}

}  // namespace rapt::kernels
#endif
