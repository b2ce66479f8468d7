#include <cmath>
#include <limits>

#include "rapt/kernels/reference_softmax.h"
#include "rapt/kernels/rows.h"
#include "rapt/kernels/softmax.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rapt/kernels/cross_entropy.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "rapt/kernels/row_sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels::HWY_NAMESPACE {
namespace {

// The sums of exp(x - shift), whose terms go to y if it is not null, and of x - shift.
template <class T>
HWY_INLINE void ExpSums(const T* x, float shift, float* y, int64_t cols, double& exponentials,
                        double& shifted) {
  const auto vs = hn::Set(hn::ScalableTag<float>(), shift);
  TwoRowSums(
      cols,
      [=](auto d, int64_t i, int64_t count, auto& a, auto& b) HWY_ATTR {
        b = hn::Add(b, hn::Sub(LoadUpTo(d, x + i, count, vs), vs));
        a = hn::Add(a, ExpAt(d, x, vs, y, i, count));
      },
      exponentials, shifted);
}

// One row with a target; d may be x or null. The exponentials go to `e`, which may be d if it is
// f32, and is null if d is. Returns the loss.
template <class T>
HWY_INLINE float CrossEntropyRow(const T* x, int32_t target, double smoothing, float* e, T* d,
                                 int64_t V) {
  const float shift = RowShift(x, V);
  const double on_target = 1 - smoothing, each = smoothing / static_cast<double>(V);
  // What the loss needs of x comes before d is written.
  const double target_logit =
      static_cast<double>(static_cast<float>(x[target])) - static_cast<double>(shift);
  double exponentials = 0, shifted = 0;
  if (smoothing > 0) {
    ExpSums(x, shift, e, V, exponentials, shifted);
  } else {
    exponentials = static_cast<double>(RowExpSum(x, shift, e, V));
  }
  const float total = static_cast<float>(exponentials);
  if (d != nullptr) {
    const float factor = total == 0 ? 0.0f : 1 / total, uniform = static_cast<float>(each);
    const auto slope = [=](auto tag, auto v) HWY_ATTR {
      return hn::MulSub(v, hn::Set(tag, factor), hn::Set(tag, uniform));
    };
    const hn::CappedTag<float, 1> one;
    const float of_target = hn::GetLane(slope(one, hn::Set(one, e[target])));
    MapRow(e, d, V, slope);
    d[target] = T(of_target - static_cast<float>(on_target));
  }
  if (total == 0) return std::numeric_limits<float>::infinity();  // all logits minus infinity
  const double log_total = std::log(exponentials);
  double loss = smoothing < 1 ? on_target * (log_total - target_logit) : 0;
  if (smoothing > 0) loss += smoothing * log_total - each * shifted;
  return static_cast<float>(loss);
}

HWY_INLINE float* Exponentials(float* d, int64_t /*V*/) { return d; }
HWY_INLINE float* Exponentials(bf16* d, int64_t V) {
  return d == nullptr ? nullptr : row_scratch(V);
}

template <class T>
void CrossEntropyRows(const T* logits, int64_t ld, const int32_t* targets, int32_t ignore_index,
                      double smoothing, float* losses, T* d_logits, int64_t ldd, int64_t rows,
                      int64_t V) {
  const hn::ScalableTag<float> tag;
  for (int64_t r = 0; r < rows; ++r) {
    T* d = d_logits == nullptr ? nullptr : d_logits + r * ldd;
    if (targets[r] != ignore_index) {
      losses[r] = CrossEntropyRow(logits + r * ld, targets[r], smoothing, Exponentials(d, V), d, V);
      continue;
    }
    losses[r] = 0;  // whatever its logits are
    if (d == nullptr) continue;
    for (int64_t i = 0; i < V; i += LaneCount(tag)) StoreUpTo(hn::Zero(tag), tag, d + i, V - i);
  }
}

constexpr auto& CrossEntropyRowsF32 = CrossEntropyRows<float>;
constexpr auto& CrossEntropyRowsBf16 = CrossEntropyRows<bf16>;

}  // namespace
}  // namespace rapt::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rapt::kernels {
namespace {

HWY_EXPORT(CrossEntropyRowsF32);
HWY_EXPORT(CrossEntropyRowsBf16);

template <class T, class F>
void by_rows(const T* logits, int64_t ld, const int32_t* targets, int32_t ignore_index,
             double smoothing, Precise<T>* losses, T* d_logits, int64_t ldd, int64_t rows,
             int64_t V, const F& f) {
  parallel_ranges(rows, rows_per_chunk(V), [&](int64_t begin, int64_t end) {
    f(logits + begin * ld, ld, targets + begin, ignore_index, smoothing, losses + begin,
      d_logits == nullptr ? nullptr : d_logits + begin * ldd, ldd, end - begin, V);
  });
}

}  // namespace

void cross_entropy(const float* logits, int64_t ld, const int32_t* targets, int32_t ignore_index,
                   double smoothing, float* losses, float* d_logits, int64_t ldd, int64_t rows,
                   int64_t V) {
  by_rows(logits, ld, targets, ignore_index, smoothing, losses, d_logits, ldd, rows, V,
          HWY_DYNAMIC_DISPATCH(CrossEntropyRowsF32));
}
void cross_entropy(const double* logits, int64_t ld, const int32_t* targets, int32_t ignore_index,
                   double smoothing, double* losses, double* d_logits, int64_t ldd, int64_t rows,
                   int64_t V) {
  by_rows(logits, ld, targets, ignore_index, smoothing, losses, d_logits, ldd, rows, V,
          reference::cross_entropy<double>);
}
void cross_entropy(const bf16* logits, int64_t ld, const int32_t* targets, int32_t ignore_index,
                   double smoothing, float* losses, bf16* d_logits, int64_t ldd, int64_t rows,
                   int64_t V) {
  by_rows(logits, ld, targets, ignore_index, smoothing, losses, d_logits, ldd, rows, V,
          HWY_DYNAMIC_DISPATCH(CrossEntropyRowsBf16));
}

}  // namespace rapt::kernels
#endif
