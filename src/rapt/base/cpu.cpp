#include "rapt/base/cpu.h"

#include <cpuid.h>
#include <hwy/targets.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iterator>

#include "rapt/base/check.h"

namespace rapt {
namespace {

constexpr std::string_view kNames[] = {"scalar", "sse4", "avx2", "avx512", "avx512_bf16", "amx"};
constexpr int kCount = static_cast<int>(std::size(kNames));

// The Highway target of each.
constexpr int64_t kTargets[] = {HWY_EMU128, HWY_SSE4, HWY_AVX2, HWY_AVX3, HWY_AVX3, HWY_AVX3};

struct Leaf {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

Leaf cpuid(unsigned leaf, unsigned subleaf) {
  Leaf result;  // zeros where the CPU knows no such leaf
  __get_cpuid_count(leaf, subleaf, &result.a, &result.b, &result.c, &result.d);
  return result;
}

bool bit(unsigned word, int index) { return (word >> index & 1) != 0; }

// Whether the operating system saves the tile registers and lets this process use them; Linux wants
// to be asked first.
bool system_allows_tiles() {
  if (!bit(cpuid(1, 0).c, 27)) return false;  // OSXSAVE: xgetbv may be called
  unsigned low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  constexpr int kTileConfig = 17, kTileData = 18;
  if (!bit(low, kTileConfig) || !bit(low, kTileData)) return false;
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

// Asking Highway what the CPU has also makes it choose; that is left to the first kernel.
int64_t supported_targets() {
  const bool chosen = hwy::GetChosenTarget().IsInitialized();
  const int64_t targets = hwy::SupportedTargets();
  if (!chosen) hwy::GetChosenTarget().DeInit();
  return targets;
}

Isa detect() {
  const int64_t targets = supported_targets();
  const auto has = [&](Isa isa) { return (targets & kTargets[static_cast<int>(isa)]) != 0; };
  if (!has(Isa::sse4)) return Isa::scalar;
  if (!has(Isa::avx2)) return Isa::sse4;
  if (!has(Isa::avx512)) return Isa::avx2;
  const Leaf features = cpuid(7, 0), more = cpuid(7, 1);
  const bool bf16 = bit(features.c, 11) && bit(more.a, 5);  // AVX512_VNNI, AVX512_BF16
  if (!bf16) return Isa::avx512;
  const bool tiles = bit(features.d, 24) && bit(features.d, 22) && bit(features.d, 25);
  return tiles && system_allows_tiles() ? Isa::amx : Isa::avx512_bf16;  // AMX_TILE, _BF16, _INT8
}

// What restrict_isa() chose, and whether anybody has built on the answer.
std::atomic<int> restriction{-1};
std::atomic<bool> settled{false};

}  // namespace

std::string_view isa_name(Isa isa) { return kNames[static_cast<int>(isa)]; }

Isa parse_isa(std::string_view name) {
  for (int i = 0; i < kCount; ++i) {
    if (kNames[i] == name) return static_cast<Isa>(i);
  }
  fail(ErrorKind::usage,
       "isa: expected one of scalar, sse4, avx2, avx512, avx512_bf16, amx, got '{}'", name);
}

Isa detected_isa() {
  static const Isa isa = detect();
  return isa;
}

Isa active_isa() {
  settled = true;
  const int chosen = restriction;
  return chosen < 0 ? detected_isa() : static_cast<Isa>(chosen);
}

void restrict_isa(Isa isa) {
  if (isa > detected_isa())
    fail(ErrorKind::usage, "isa: this CPU ({}) has at most {}, not {}", cpu_name(),
         isa_name(detected_isa()), isa_name(isa));
  RAPT_CHECK(!settled.load() && !hwy::GetChosenTarget().IsInitialized(),
             "isa: it is too late for {}: kernels have run already (choose it first of all)",
             isa_name(isa));
  int none = -1;
  RAPT_CHECK(restriction.compare_exchange_strong(none, static_cast<int>(isa)),
             "isa: it is too late for {}: {} was chosen before", isa_name(isa),
             isa_name(static_cast<Isa>(none)));
  hwy::DisableTargets(kTargets[static_cast<int>(isa)] - 1);  // better targets have lower bits
}

std::vector<Isa> available_isas() {
  std::vector<Isa> result;
  for (int i = 0; i <= static_cast<int>(detected_isa()); ++i) {
    result.push_back(static_cast<Isa>(i));
  }
  return result;
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown CPU";
}

}  // namespace rapt
