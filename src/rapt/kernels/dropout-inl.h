// Dropout along a row, on vectors: which elements go and how the others grow.
#if defined(RAPT_KERNELS_DROPOUT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_KERNELS_DROPOUT_INL_H_
#undef RAPT_KERNELS_DROPOUT_INL_H_
#else
#define RAPT_KERNELS_DROPOUT_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "rapt/kernels/philox-inl.h"
#include "rapt/kernels/types.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Calls f(d, i, count, drop) for the vectors of columns [begin, end) of a row, in order: columns
// [i, i + count), where drop(v) is dropout of the values v that stand there. `begin` is a multiple
// of 64. Without dropout (probability 0) drop(v) is v, whatever `id` is.
template <class F>
HWY_INLINE void ForDropped(const Dropout& spec, RowId id, int64_t begin, int64_t end, const F& f) {
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  using V = hn::Vec<decltype(d)>;
  if (spec.probability <= 0) {
    for (int64_t i = begin; i < end; i += lanes) {
      f(d, i, std::min(lanes, end - i), [](V v) HWY_ATTR { return v; });
    }
    return;
  }
  const auto threshold = hn::Set(du, dropout_threshold(spec.probability));
  const V scale = hn::Set(d, static_cast<float>(1 / (1 - spec.probability)));
  HWY_ALIGN uint32_t words[64];
  for (int64_t group = begin; group < end; group += 64) {
    PhiloxGroup(static_cast<uint32_t>(group / 64), id.position, id.sample, spec.key, words);
    const int64_t stop = std::min(group + 64, end);
    for (int64_t i = group; i < stop; i += lanes) {
      const auto drop = hn::RebindMask(d, hn::Lt(hn::Load(du, words + (i - group)), threshold));
      f(d, i, std::min(lanes, stop - i),
        [&](V v) HWY_ATTR { return hn::IfThenZeroElse(drop, hn::Mul(v, scale)); });
    }
  }
}

}  // namespace rapt::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
