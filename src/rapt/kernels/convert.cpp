#include "rapt/kernels/elementwise.h"
#include "rapt/kernels/reference_elementwise.h"
#include "rapt/kernels/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rapt/kernels/convert.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "rapt/kernels/bf16-inl.h"
#include "rapt/kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels::HWY_NAMESPACE {
namespace {

void ToBf16(const float* x, bf16* y, int64_t n) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = LaneCount(d);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) StoreBf16(d, hn::LoadU(d, x + i), y + i);
  for (; i < n; ++i) y[i] = bf16(x[i]);
}

void FromBf16(const bf16* x, float* y, int64_t n) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = LaneCount(d);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(LoadBf16(d, x + i), d, y + i);
  for (; i < n; ++i) y[i] = static_cast<float>(x[i]);
}

}  // namespace
}  // namespace rapt::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rapt::kernels {

HWY_EXPORT(ToBf16);
HWY_EXPORT(FromBf16);

void convert(const float* x, bf16* y, int64_t n) {
  parallel_ranges(n, kPieceElements, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(ToBf16)(x + begin, y + begin, end - begin);
  });
}

void convert(const bf16* x, float* y, int64_t n) {
  parallel_ranges(n, kPieceElements, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(FromBf16)(x + begin, y + begin, end - begin);
  });
}

void convert(const float* x, double* y, int64_t n) {
  parallel_ranges(n, kPieceElements, [&](int64_t begin, int64_t end) {
    reference::convert(x + begin, y + begin, end - begin);
  });
}

void convert(const double* x, float* y, int64_t n) {
  parallel_ranges(n, kPieceElements, [&](int64_t begin, int64_t end) {
    reference::convert(x + begin, y + begin, end - begin);
  });
}

}  // namespace rapt::kernels
#endif
