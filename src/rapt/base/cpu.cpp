#include "rapt/base/cpu.h"

#include <hwy/highway.h>

#include "rapt/base/check.h"

namespace rapt {
namespace {
constexpr std::string_view kNames[] = {"scalar", "sse4", "avx2", "avx512", "avx512_bf16", "amx"};
}
std::string_view isa_name(Isa isa) { return kNames[static_cast<int>(isa)]; }
Isa parse_isa(std::string_view name) {
  for (int i = 0; i < 6; ++i) {
    if (kNames[i] == name) return static_cast<Isa>(i);
  }
  fail(ErrorKind::usage, "isa: expected one of scalar, sse4, avx2, avx512, avx512_bf16, amx, got {}", name);
}
Isa detected_isa() { return Isa::avx512; }
Isa active_isa() { return Isa::avx512; }
void restrict_isa(Isa isa) {
  const int64_t best[] = {0, HWY_SSE4, HWY_AVX2, HWY_AVX3, HWY_AVX3, HWY_AVX3};
  const int64_t lowest = best[static_cast<int>(isa)] == 0 ? HWY_EMU128 : best[static_cast<int>(isa)];
  hwy::DisableTargets(lowest - 1);  // better targets have lower bits
}
std::vector<Isa> available_isas() { return {}; }
std::string cpu_name() { return ""; }
}  // namespace rapt
