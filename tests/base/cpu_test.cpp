#include "rapt/base/cpu.h"

#include <hwy/targets.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "tests/testing/testing.h"

namespace rapt {
namespace {

using testing::error_of;

// Whether `body` holds in a forked child, where it may restrict the instruction set.
template <class Body>
bool holds_in_child(Body&& body) {
  const pid_t child = fork();
  if (child == 0) {
    try {
      _exit(body() ? 0 : 1);
    } catch (const Error& error) {
      std::fprintf(stderr, "%s\n", error.what());
      _exit(2);
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0;
}

// What restrict_isa() complains of; empty where it does as it is told.
std::string refusal(Isa isa) {
  try {
    restrict_isa(isa);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}
bool refused(Isa isa) { return !refusal(isa).empty(); }

// The flags of the first CPU as Linux lists them, with a space on both sides.
std::string cpu_flags() {
  std::string flags;
  std::FILE* file = std::fopen("/proc/cpuinfo", "r");
  char line[1 << 16];
  while (flags.empty() && std::fgets(line, sizeof line, file) != nullptr) {
    const std::string text = line;
    if (text.starts_with("flags")) flags = text.substr(text.find(':') + 1);
  }
  std::fclose(file);
  flags.back() = ' ';
  return flags;
}

TEST(Isa, NamesAndValuesMatch) {
  for (const Isa isa :
       {Isa::scalar, Isa::sse4, Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx}) {
    EXPECT_EQ(parse_isa(isa_name(isa)), isa);
  }
  EXPECT_EQ(isa_name(Isa::avx512_bf16), "avx512_bf16");
  EXPECT_EQ(error_of([] { parse_isa("AVX2"); }),
            "isa: expected one of scalar, sse4, avx2, avx512, avx512_bf16, amx, got 'AVX2'");
}

// Linux shows a flag only where it also saves the registers.
TEST(Isa, DetectionAgreesWithLinux) {
  const std::string flags = cpu_flags();
  const auto has = [&](const std::string& flag) {
    return flags.find(" " + flag + " ") != std::string::npos;
  };
  Isa expected = Isa::scalar;
  const bool sse4 = has("sse4_1") && has("sse4_2") && has("aes") && has("pclmulqdq");
  const bool avx2 = sse4 && has("avx2") && has("fma") && has("bmi2") && has("f16c");
  const bool avx512 =
      avx2 && has("avx512f") && has("avx512bw") && has("avx512dq") && has("avx512vl");
  const bool bf16 = avx512 && has("avx512_bf16") && has("avx512_vnni");
  const bool amx = bf16 && has("amx_tile") && has("amx_bf16") && has("amx_int8");
  if (sse4) expected = Isa::sse4;
  if (avx2) expected = Isa::avx2;
  if (avx512) expected = Isa::avx512;
  if (bf16) expected = Isa::avx512_bf16;
  if (amx) expected = Isa::amx;
  EXPECT_EQ(detected_isa(), expected) << cpu_name();
  ASSERT_EQ(available_isas().size(), static_cast<size_t>(expected) + 1);
  EXPECT_EQ(available_isas().front(), Isa::scalar);
  EXPECT_EQ(available_isas().back(), expected);
  EXPECT_NE(cpu_name(), "");
}

TEST(Isa, TilesMayBeUsedWhereTheyAreDetected) {
  EXPECT_TRUE(holds_in_child([] {
    if (detected_isa() < Isa::amx) return refused(Isa::amx);
    // ldtilecfg of a configuration with one tile, tilezero, tilerelease: no illegal instruction.
    alignas(64) unsigned char config[64] = {1};
    config[16] = 64;
    config[48] = 16;
    __asm__ volatile("ldtilecfg %0" : : "m"(config));
    __asm__ volatile(".byte 0xc4, 0xe2, 0x7b, 0x49, 0xc0");  // tilezero tmm0
    __asm__ volatile("tilerelease");
    return true;
  }));
}

TEST(Isa, RestrictionHoldsForEveryKernel) {
  for (const Isa isa : available_isas()) {
    EXPECT_TRUE(holds_in_child([&] {
      restrict_isa(isa);
      const int64_t targets = hwy::SupportedTargets();
      return active_isa() == isa && ((targets & HWY_AVX3) != 0) == (isa >= Isa::avx512) &&
             ((targets & HWY_AVX2) != 0) == (isa >= Isa::avx2) &&
             ((targets & HWY_SSE4) != 0) == (isa >= Isa::sse4);
    })) << isa_name(isa);
  }
}

TEST(Isa, RestrictionActsOnce) {
  EXPECT_TRUE(holds_in_child([] {
    restrict_isa(Isa::scalar);
    return refused(Isa::scalar) && refused(detected_isa()) && active_isa() == Isa::scalar;
  }));
}

TEST(Isa, RestrictionComesBeforeAnyUse) {
  EXPECT_TRUE(holds_in_child([] {
    return active_isa() == detected_isa() && refused(Isa::scalar) && active_isa() == detected_isa();
  }));
  EXPECT_TRUE(holds_in_child([] {
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());  // what the first kernel does
    return refused(Isa::scalar);
  }));
}

TEST(Isa, RestrictionNeedsTheCpu) {
  for (int i = 0; i <= static_cast<int>(Isa::amx); ++i) {
    const Isa isa = static_cast<Isa>(i);
    EXPECT_TRUE(holds_in_child([&] {
      const std::string message = refusal(isa);
      return isa <= detected_isa() ? message.empty()
                                   : message.find("has at most") != std::string::npos;
    })) << isa_name(isa);
  }
}

}  // namespace
}  // namespace rapt
