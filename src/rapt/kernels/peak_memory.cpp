#include "rapt/kernels/peak_memory.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rapt/kernels/peak_memory.cpp"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

float ReadMemory(const float* x, int64_t count) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;  // the adder must not be what is measured
  int64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    s0 = hn::Add(s0, hn::LoadU(d, x + i));
    s1 = hn::Add(s1, hn::LoadU(d, x + i + lanes));
    s2 = hn::Add(s2, hn::LoadU(d, x + i + 2 * lanes));
    s3 = hn::Add(s3, hn::LoadU(d, x + i + 3 * lanes));
  }
  float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
  for (; i < count; ++i) sum += x[i];
  return sum;
}

void CopyMemory(const float* x, float* y, int64_t count) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(hn::LoadU(d, x + i), d, y + i);
  for (; i < count; ++i) y[i] = x[i];
}

void UpdateMemory(float* x, int64_t count, float increment) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto more = hn::Set(d, increment);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(hn::Add(hn::LoadU(d, x + i), more), d, x + i);
  for (; i < count; ++i) x[i] += increment;
}

}  // namespace rapt::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rapt::kernels {
HWY_EXPORT(ReadMemory);
HWY_EXPORT(CopyMemory);
HWY_EXPORT(UpdateMemory);

float read_memory(const float* x, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(ReadMemory)(x, count);
}
void copy_memory(const float* x, float* y, int64_t count) {
  HWY_DYNAMIC_DISPATCH(CopyMemory)(x, y, count);
}
void update_memory(float* x, int64_t count, float increment) {
  HWY_DYNAMIC_DISPATCH(UpdateMemory)(x, count, increment);
}

}  // namespace rapt::kernels
#endif
