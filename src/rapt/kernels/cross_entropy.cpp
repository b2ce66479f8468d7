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
HWY_INLINE void ExpSums(const float* x, float shift, float* y, int64_t cols, double& exponentials,
                        double& shifted) {
  const auto vs = hn::Set(hn::ScalableTag<float>(), shift);
  TwoRowSums(
      cols,
      [=](auto d, int64_t i, int64_t count, auto& a, auto& b) HWY_ATTR {
        const auto part =
            count >= LaneCount(d) ? hn::LoadU(d, x + i) : LoadPart(d, x + i, count, vs);
        b = hn::Add(b, hn::Sub(part, vs));
        a = hn::Add(a, ExpAt(d, x, vs, y, i, count));
      },
      exponentials, shifted);
}

// One row with a target; d may be x or null. Returns the loss.
HWY_INLINE float CrossEntropyRow(const float* x, int32_t target, double smoothing, float* d,
                                 int64_t V) {
  const float shift = RowShift(x, V);
  const double on_target = 1 - smoothing, each = smoothing / static_cast<double>(V);
  // What the loss needs of x comes before d is written.
  const double target_logit = static_cast<double>(x[target]) - static_cast<double>(shift);
  double exponentials = 0, shifted = 0;
  if (smoothing > 0) {
    ExpSums(x, shift, d, V, exponentials, shifted);
  } else {
    exponentials = static_cast<double>(RowExpSum(x, shift, d, V));
  }
  const float total = static_cast<float>(exponentials);
  if (d != nullptr) {
    const float factor = total == 0 ? 0.0f : 1 / total, uniform = static_cast<float>(each);
    MapRow(d, d, V, [=](auto tag, auto e) HWY_ATTR {
      return hn::MulSub(e, hn::Set(tag, factor), hn::Set(tag, uniform));
    });
    d[target] -= static_cast<float>(on_target);
  }
  if (total == 0) return std::numeric_limits<float>::infinity();  // all logits minus infinity
  const double log_total = std::log(exponentials);
  double loss = smoothing < 1 ? on_target * (log_total - target_logit) : 0;
  if (smoothing > 0) loss += smoothing * log_total - each * shifted;
  return static_cast<float>(loss);
}

void CrossEntropyRows(const float* logits, int64_t ld, const int32_t* targets, int32_t ignore_index,
                      double smoothing, float* losses, float* d_logits, int64_t ldd, int64_t rows,
                      int64_t V) {
  const hn::ScalableTag<float> tag;
  for (int64_t r = 0; r < rows; ++r) {
    float* d = d_logits == nullptr ? nullptr : d_logits + r * ldd;
    if (targets[r] != ignore_index) {
      losses[r] = CrossEntropyRow(logits + r * ld, targets[r], smoothing, d, V);
      continue;
    }
    losses[r] = 0;  // whatever its logits are
    if (d == nullptr) continue;
    for (int64_t i = 0; i < V; i += LaneCount(tag)) StoreUpTo(hn::Zero(tag), tag, d + i, V - i);
  }
}

}  // namespace
}  // namespace rapt::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rapt::kernels {

HWY_EXPORT(CrossEntropyRows);

void cross_entropy(const float* logits, int64_t ld, const int32_t* targets, int32_t ignore_index,
                   double smoothing, float* losses, float* d_logits, int64_t ldd, int64_t rows,
                   int64_t V) {
  parallel_ranges(rows, rows_per_chunk(V), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(CrossEntropyRows)
    (logits + begin * ld, ld, targets + begin, ignore_index, smoothing, losses + begin,
     d_logits == nullptr ? nullptr : d_logits + begin * ldd, ldd, end - begin, V);
  });
}

void cross_entropy(const double* logits, int64_t ld, const int32_t* targets, int32_t ignore_index,
                   double smoothing, double* losses, double* d_logits, int64_t ldd, int64_t rows,
                   int64_t V) {
  parallel_ranges(rows, rows_per_chunk(V), [&](int64_t begin, int64_t end) {
    reference::cross_entropy(logits + begin * ld, ld, targets + begin, ignore_index, smoothing,
                             losses + begin, d_logits == nullptr ? nullptr : d_logits + begin * ldd,
                             ldd, end - begin, V);
  });
}

}  // namespace rapt::kernels
#endif
