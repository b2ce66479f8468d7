#include "rapt/kernels/optimizer.h"

#include "rapt/kernels/reference_optimizer.h"
#include "rapt/kernels/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rapt/kernels/optimizer.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "rapt/kernels/bf16-inl.h"
#include "rapt/kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels::HWY_NAMESPACE {
namespace {

constexpr uintptr_t kTwinAlignment = 64;
// Shorter vectors would be written beyond their end.
constexpr bool kStreams = HWY_LANES(float) * sizeof(bf16) >= 16;

// The parameter's new value, to p and to its twin; to that past the caches where it is aligned, as
// nobody reads it before the step is over.
template <class D, class V>
HWY_INLINE void StoreParameter(D d, V v, float* p, bf16* twin, int64_t i, int64_t count) {
  StoreUpTo(v, d, p + i, count);
  if (twin == nullptr) return;
  if (kStreams && count >= LaneCount(d) &&
      reinterpret_cast<uintptr_t>(twin) % kTwinAlignment == 0) {
    StreamBf16(d, v, twin + i);
  } else if (count >= LaneCount(d)) {
    StoreBf16(d, v, twin + i);
  } else {
    for (int64_t k = i; k < i + count; ++k) twin[k] = bf16(p[k]);
  }
}

void SgdRange(const SgdStep& s, float* p, const float* g, float* m, bf16* twin, int64_t n) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = LaneCount(d);
  const auto scale = hn::Set(d, static_cast<float>(s.grad_scale));
  const auto decay = hn::Set(d, static_cast<float>(s.weight_decay));
  const auto momentum = hn::Set(d, static_cast<float>(s.momentum));
  const auto fresh = hn::Set(d, static_cast<float>(1 - s.dampening));
  const auto rate = hn::Set(d, static_cast<float>(s.rate));
  const bool with_momentum = s.momentum != 0, nesterov = s.nesterov, first = s.first;
  for (int64_t i = 0; i < n; i += lanes) {
    const int64_t count = std::min(lanes, n - i);
    const auto old = LoadUpTo(d, p + i, count);
    auto step = hn::MulAdd(decay, old, hn::Mul(LoadUpTo(d, g + i, count), scale));
    if (with_momentum) {
      auto mean = step;
      if (!first) {
        mean = hn::MulAdd(momentum, LoadUpTo(d, m + i, count), hn::Mul(fresh, step));
      }
      StoreUpTo(mean, d, m + i, count);
      step = nesterov ? hn::MulAdd(momentum, mean, step) : mean;
    }
    StoreParameter(d, hn::NegMulAdd(rate, step, old), p, twin, i, count);
  }
  hwy::FlushStream();
}

void AdamRange(const AdamStep& s, const reference::AdamFactors& f, float* p, const float* g,
               float* m, float* v, bf16* twin, int64_t n) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = LaneCount(d);
  const auto scale = hn::Set(d, static_cast<float>(s.grad_scale));
  const auto l2 = hn::Set(d, static_cast<float>(f.l2));
  const auto keep = hn::Set(d, static_cast<float>(f.keep));
  const auto fresh1 = hn::Set(d, static_cast<float>(1 - s.beta1));
  const auto beta2 = hn::Set(d, static_cast<float>(s.beta2));
  const auto fresh2 = hn::Set(d, static_cast<float>(1 - s.beta2));
  const auto root_scale = hn::Set(d, static_cast<float>(f.root_scale));
  const auto epsilon = hn::Set(d, static_cast<float>(s.epsilon));
  const auto step = hn::Set(d, static_cast<float>(f.step));
  for (int64_t i = 0; i < n; i += lanes) {
    const int64_t count = std::min(lanes, n - i);
    const auto old = LoadUpTo(d, p + i, count), mean = LoadUpTo(d, m + i, count);
    const auto grad = hn::MulAdd(l2, old, hn::Mul(LoadUpTo(d, g + i, count), scale));
    const auto first = hn::MulAdd(hn::Sub(grad, mean), fresh1, mean);
    const auto square = hn::Mul(hn::Mul(fresh2, grad), grad);
    const auto second = hn::MulAdd(beta2, LoadUpTo(d, v + i, count), square);
    StoreUpTo(first, d, m + i, count);
    StoreUpTo(second, d, v + i, count);
    const auto root = hn::MulAdd(hn::Sqrt(second), root_scale, epsilon);
    const auto change = hn::Div(hn::Mul(step, first), root);
    StoreParameter(d, hn::MulSub(old, keep, change), p, twin, i, count);
  }
  hwy::FlushStream();
}

}  // namespace
}  // namespace rapt::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rapt::kernels {

HWY_EXPORT(SgdRange);
HWY_EXPORT(AdamRange);

void sgd(const SgdStep& step, float* p, const float* g, float* m, bf16* twin, int64_t n) {
  parallel_ranges(n, kPieceElements, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(SgdRange)
    (step, p + begin, g + begin, m == nullptr ? nullptr : m + begin,
     twin == nullptr ? nullptr : twin + begin, end - begin);
  });
}

void sgd(const SgdStep& step, double* p, const double* g, double* m, bf16* twin, int64_t n) {
  parallel_ranges(n, kPieceElements, [&](int64_t begin, int64_t end) {
    reference::sgd(step, p + begin, g + begin, m == nullptr ? nullptr : m + begin,
                   twin == nullptr ? nullptr : twin + begin, end - begin);
  });
}

void adam(const AdamStep& step, float* p, const float* g, float* m, float* v, bf16* twin,
          int64_t n) {
  const reference::AdamFactors factors = reference::adam_factors(step);
  parallel_ranges(n, kPieceElements, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(AdamRange)
    (step, factors, p + begin, g + begin, m + begin, v + begin,
     twin == nullptr ? nullptr : twin + begin, end - begin);
  });
}

void adam(const AdamStep& step, double* p, const double* g, double* m, double* v, bf16* twin,
          int64_t n) {
  parallel_ranges(n, kPieceElements, [&](int64_t begin, int64_t end) {
    reference::adam(step, p + begin, g + begin, m + begin, v + begin,
                    twin == nullptr ? nullptr : twin + begin, end - begin);
  });
}

}  // namespace rapt::kernels
#endif
