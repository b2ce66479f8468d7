#include "rapt/kernels/peak.h"

#include <string>
#include <vector>

#include "rapt/base/cpu.h"
#include "rapt/kernels/peak_memory.h"
#include "tests/testing/testing.h"

namespace rapt::kernels {
namespace {

std::vector<std::string> names() {
  std::vector<std::string> result;
  for (const PeakLoop& loop : peak_loops()) result.emplace_back(loop.name);
  return result;
}

TEST(Peak, EachLoopDoesTheOperationsItClaims) {
  for (const PeakLoop& loop : peak_loops()) {
    for (const int64_t rounds : {0, 1, 2, 7, 1000}) {
      EXPECT_EQ(loop.run(rounds), static_cast<double>(rounds) * loop.operations / 2)
          << loop.name << ", " << rounds << " rounds";
    }
  }
}

TEST(Peak, TheTypesAreThoseOfTheInstructionSet) {
  std::vector<std::string> expected = {"f32"};
  if (active_isa() == Isa::avx512_bf16) expected = {"f32", "bf16", "int8"};
  if (active_isa() == Isa::amx) expected = {"f32", "bf16", "amx_bf16", "int8", "amx_int8"};
  EXPECT_EQ(names(), expected);
}

TEST(Peak, ARoundOfF32FillsTheVectorsOfTheInstructionSet) {
  const double lanes = peak_loops().front().operations / (2 * 12);
  const Isa isa = active_isa();
  if (isa == Isa::scalar) {
    EXPECT_GE(lanes, 1);
  } else {
    EXPECT_EQ(lanes, isa >= Isa::avx512 ? 16 : isa == Isa::avx2 ? 8 : 4);
  }
}

TEST(PeakMemory, ReadsCopiesAndUpdatesEveryElementOnceForAnyCount) {
  for (int count = 0; count <= 200; ++count) {
    std::vector<float> x(static_cast<size_t>(count) + 1);
    float sum = 0;
    for (int i = 0; i < count; ++i) sum += x[static_cast<size_t>(i)] = static_cast<float>(i % 7);
    EXPECT_EQ(read_memory(x.data(), count), sum);

    std::vector<float> y(x.size(), -1);
    copy_memory(x.data(), y.data(), count);
    std::vector<float> expected = x;
    expected.back() = -1;
    EXPECT_EQ(y, expected);

    update_memory(y.data(), count, 2);
    for (int i = 0; i < count; ++i) expected[static_cast<size_t>(i)] += 2;
    EXPECT_EQ(y, expected);
  }
}

}  // namespace
}  // namespace rapt::kernels
