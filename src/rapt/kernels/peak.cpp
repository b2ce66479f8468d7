#include "rapt/kernels/peak.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rapt/kernels/peak.cpp"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
// clang-format on

#ifndef RAPT_KERNELS_PEAK_ONCE
#define RAPT_KERNELS_PEAK_ONCE
namespace rapt::kernels {
// What the compiler may not know: that the factors are 1, and that the sums start at the same
// value. It would leave out the multiplications, or compute equal sums once.
struct PeakNumbers {
  float one = 1;
  float zeros[12] = {};  // as many sums as keep two units busy, each with a latency of up to six
};
}  // namespace rapt::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

double MultiplyAddRounds(int64_t rounds, const PeakNumbers& numbers) {
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, numbers.one), term = factor;
  const float* zeros = numbers.zeros;
  auto a0 = hn::Set(d, zeros[0]), a1 = hn::Set(d, zeros[1]), a2 = hn::Set(d, zeros[2]);
  auto a3 = hn::Set(d, zeros[3]), a4 = hn::Set(d, zeros[4]), a5 = hn::Set(d, zeros[5]);
  auto a6 = hn::Set(d, zeros[6]), a7 = hn::Set(d, zeros[7]), a8 = hn::Set(d, zeros[8]);
  auto a9 = hn::Set(d, zeros[9]), a10 = hn::Set(d, zeros[10]), a11 = hn::Set(d, zeros[11]);
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

double OperationsPerRound() {
  return 2.0 * 12.0 * static_cast<double>(hn::Lanes(hn::ScalableTag<float>()));
}

}  // namespace rapt::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <vector>

#include "rapt/base/cpu.h"
#include "rapt/kernels/x86/peak.h"

namespace rapt::kernels {
HWY_EXPORT(MultiplyAddRounds);
HWY_EXPORT(OperationsPerRound);

namespace {

double f32_rounds(int64_t rounds) {
  return HWY_DYNAMIC_DISPATCH(MultiplyAddRounds)(rounds, PeakNumbers{});
}

std::vector<PeakLoop> available_loops() {
  const Isa isa = active_isa();
  std::vector<PeakLoop> loops = {{"f32", HWY_DYNAMIC_DISPATCH(OperationsPerRound)(), f32_rounds}};
  if (isa >= Isa::avx512_bf16) loops.push_back({"bf16", x86::kBf16Operations, x86::bf16_rounds});
  if (isa >= Isa::amx) loops.push_back({"amx_bf16", x86::kAmxBf16Operations, x86::amx_bf16_rounds});
  if (isa >= Isa::avx512_bf16) loops.push_back({"int8", x86::kInt8Operations, x86::int8_rounds});
  if (isa >= Isa::amx) loops.push_back({"amx_int8", x86::kAmxInt8Operations, x86::amx_int8_rounds});
  return loops;
}

}  // namespace

std::span<const PeakLoop> peak_loops() {
  static const std::vector<PeakLoop> loops = available_loops();
  return loops;
}

}  // namespace rapt::kernels
#endif
