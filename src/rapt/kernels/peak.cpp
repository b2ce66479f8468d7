#include "rapt/kernels/peak.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rapt/kernels/peak.cpp"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int kChains = 12;  // enough for two units with a latency of four or five cycles

float MultiplyAddRounds(int64_t rounds) {
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, 0.999999f), term = hn::Set(d, 1e-6f);
  // Each chain starts elsewhere: equal ones would be computed once.
  auto a0 = hn::Set(d, 1.0f);
  auto a1 = hn::Set(d, 2.0f);
  auto a2 = hn::Set(d, 3.0f);
  auto a3 = hn::Set(d, 4.0f);
  auto a4 = hn::Set(d, 5.0f);
  auto a5 = hn::Set(d, 6.0f);
  auto a6 = hn::Set(d, 7.0f);
  auto a7 = hn::Set(d, 8.0f);
  auto a8 = hn::Set(d, 9.0f);
  auto a9 = hn::Set(d, 10.0f);
  auto a10 = hn::Set(d, 11.0f);
  auto a11 = hn::Set(d, 12.0f);
  for (int64_t i = 0; i < rounds; ++i) {
    a0 = hn::MulAdd(a0, factor, term);
    a1 = hn::MulAdd(a1, factor, term);
    a2 = hn::MulAdd(a2, factor, term);
    a3 = hn::MulAdd(a3, factor, term);
    a4 = hn::MulAdd(a4, factor, term);
    a5 = hn::MulAdd(a5, factor, term);
    a6 = hn::MulAdd(a6, factor, term);
    a7 = hn::MulAdd(a7, factor, term);
    a8 = hn::MulAdd(a8, factor, term);
    a9 = hn::MulAdd(a9, factor, term);
    a10 = hn::MulAdd(a10, factor, term);
    a11 = hn::MulAdd(a11, factor, term);
  }
  const auto sum =
      hn::Add(hn::Add(hn::Add(a0, a1), hn::Add(a2, a3)), hn::Add(hn::Add(a4, a5), hn::Add(a6, a7)));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(sum, hn::Add(hn::Add(a8, a9), hn::Add(a10, a11)))));
}

double FlopsPerRound() {
  return 2.0 * kChains * static_cast<double>(hn::Lanes(hn::ScalableTag<float>()));
}

}  // namespace rapt::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rapt::kernels {
HWY_EXPORT(MultiplyAddRounds);
HWY_EXPORT(FlopsPerRound);

float multiply_add_rounds(int64_t rounds) {
  return HWY_DYNAMIC_DISPATCH(MultiplyAddRounds)(rounds);
}
double flops_per_round() { return HWY_DYNAMIC_DISPATCH(FlopsPerRound)(); }
}  // namespace rapt::kernels
#endif
