// Reductions along a row: the largest element, sums, sums of exponentials. The order of additions
// depends on the length of the row and of the vectors alone.
#if defined(RAPT_KERNELS_ROW_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_KERNELS_ROW_SUMS_INL_H_
#undef RAPT_KERNELS_ROW_SUMS_INL_H_
#else
#define RAPT_KERNELS_ROW_SUMS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "rapt/kernels/rows-inl.h"
#include "rapt/kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D, class V = hn::Vec<D>>
HWY_INLINE float SumLanes(D d, V v0, V v1, V v2, V v3) {
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(v0, v1), hn::Add(v2, v3))));
}

// The largest element; NaNs are passed over, a row without numbers gives minus infinity.
template <class X>
HWY_INLINE float RowMax(const X* x, int64_t cols) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = LaneCount(d);
  const auto least = hn::Set(d, -std::numeric_limits<float>::infinity());
  auto m0 = least, m1 = least, m2 = least, m3 = least;
  int64_t i = 0;
  for (; i + 4 * lanes <= cols; i += 4 * lanes) {  // where x is NaN, Max(x, m) is m
    m0 = hn::Max(LoadAll(d, x + i), m0);
    m1 = hn::Max(LoadAll(d, x + i + lanes), m1);
    m2 = hn::Max(LoadAll(d, x + i + 2 * lanes), m2);
    m3 = hn::Max(LoadAll(d, x + i + 3 * lanes), m3);
  }
  for (; i + lanes <= cols; i += lanes) m0 = hn::Max(LoadAll(d, x + i), m0);
  if (i < cols) m1 = hn::Max(LoadPart(d, x + i, cols - i, least), m1);
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(hn::Max(m0, m1), hn::Max(m2, m3))));
}

// What softmax subtracts: the largest element, or 0 in a row of minus infinity.
template <class X>
HWY_INLINE float RowShift(const X* x, int64_t cols) {
  const float largest = RowMax(x, cols);
  return largest == -std::numeric_limits<float>::infinity() ? 0.0f : largest;
}

// The sum of f(d, i, count) over the vectors of a row: columns [i, i + count). Lanes from `count`
// on must be zero; f is called in order. Blocks of 1024 columns are added in f64: long rows keep
// the accuracy of short ones.
template <class F>
HWY_INLINE float RowSum(int64_t cols, const F& f) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = LaneCount(d);
  double total = 0;
  int64_t i = 0;
  do {
    const int64_t end = std::min(cols, i + 1024);
    auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    for (; i + 4 * lanes <= end; i += 4 * lanes) {
      s0 = hn::Add(s0, f(d, i, lanes));
      s1 = hn::Add(s1, f(d, i + lanes, lanes));
      s2 = hn::Add(s2, f(d, i + 2 * lanes, lanes));
      s3 = hn::Add(s3, f(d, i + 3 * lanes, lanes));
    }
    for (; i + lanes <= end; i += lanes) s0 = hn::Add(s0, f(d, i, lanes));
    if (i < end) {  // in the last block only
      s1 = hn::Add(s1, f(d, i, end - i));
      i = end;
    }
    total += static_cast<double>(SumLanes(d, s0, s1, s2, s3));
  } while (i < cols);
  return static_cast<float>(total);
}

// Two sums in one pass, in f64: f(d, i, count, a, b) adds the terms of columns [i, i + count) to
// the lanes of a and b, and nothing to the lanes from `count` on.
template <class F>
HWY_INLINE void TwoRowSums(int64_t cols, const F& f, double& first, double& second) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = LaneCount(d);
  first = second = 0;
  for (int64_t i = 0; i < cols;) {
    const int64_t end = std::min(cols, i + 1024);
    auto a0 = hn::Zero(d), a1 = a0, b0 = a0, b1 = a0;
    for (; i + 2 * lanes <= end; i += 2 * lanes) {
      f(d, i, lanes, a0, b0);
      f(d, i + lanes, lanes, a1, b1);
    }
    for (; i < end; i += std::min(lanes, end - i)) f(d, i, std::min(lanes, end - i), a0, b0);
    first += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(a0, a1))));
    second += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(b0, b1))));
  }
}

// exp(x - shift) of the vector at column i, which also goes to y, if it is not null; 0 in the lanes
// from `count` on. x may be y.
template <class D, class X>
HWY_INLINE hn::Vec<D> ExpAt(D d, const X* x, hn::Vec<D> shift, float* y, int64_t i, int64_t count) {
  if (count >= LaneCount(d)) {
    const auto e = Exp(d, hn::Sub(LoadAll(d, x + i), shift));
    if (y != nullptr) hn::StoreU(e, d, y + i);
    return e;
  }
  const auto least = hn::Set(d, -std::numeric_limits<float>::infinity());
  const auto e = Exp(d, hn::Sub(LoadPart(d, x + i, count, least), shift));
  if (y != nullptr) StorePart(e, d, y + i, count);
  return e;
}

// The sum of exp(x - shift); the terms go to y, if it is not null.
template <class X>
HWY_INLINE float RowExpSum(const X* x, float shift, float* y, int64_t cols) {
  const auto vs = hn::Set(hn::ScalableTag<float>(), shift);
  return RowSum(cols, [=](auto d, int64_t i, int64_t count)
                          HWY_ATTR { return ExpAt(d, x, vs, y, i, count); });
}

}  // namespace rapt::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
