#include "rapt/measure/machine.h"

#include "rapt/base/memory.h"
#include "rapt/base/runtime.h"
#include "rapt/kernels/peak.h"
#include "tests/testing/testing.h"

namespace rapt::measure {
namespace {

void expect_rates(const MachineReport& report, int threads) {
  EXPECT_EQ(report.threads, threads);
  ASSERT_EQ(report.peaks.size(), kernels::peak_loops().size());
  for (size_t i = 0; i < report.peaks.size(); ++i) {
    EXPECT_EQ(report.peaks[i].first, kernels::peak_loops()[i].name);
    EXPECT_GT(report.peaks[i].second, 1e6) << report.peaks[i].first;
  }
  for (const double rate : {report.read, report.copy, report.update, report.touch_small,
                            report.touch_huge.value_or(1e9)}) {
    EXPECT_GT(rate, 1e6);  // a million bytes a second
    EXPECT_LT(rate, 1e14);
  }
}

TEST(Machine, IsMeasuredOnOneThreadAndOnAllAndItsMemoryGoesBack) {
  release_unused_memory();
  const int64_t before = memory_use().mapped;
  Runtime two({.threads = 2, .log = {}});
  const Runtime::Scope scope(two);
  const std::vector<MachineReport> reports = measure_machine();
  ASSERT_EQ(reports.size(), 2u);
  expect_rates(reports[0], 1);
  expect_rates(reports[1], 2);
  EXPECT_EQ(memory_use().mapped, before);
}

TEST(Machine, OneThreadIsMeasuredOnce) {
  Runtime one({.threads = 1, .log = {}});
  const Runtime::Scope scope(one);
  const std::vector<MachineReport> reports = measure_machine();
  ASSERT_EQ(reports.size(), 1u);
  expect_rates(reports[0], 1);
}

TEST(Machine, PeakNeedsAThread) {
  EXPECT_GT(f32_peak(1), 1e6);
  EXPECT_THROW(f32_peak(0), Error);
}

TEST(Machine, IsNotMeasuredBeyondTheMemoryLimit) {
  release_unused_memory();
  set_memory_limit(memory_use().mapped + (int64_t{64} << 20));
  const std::string message = rapt::testing::error_of([] { measure_machine(); });
  set_memory_limit(0);
  EXPECT_NE(message.find("memory"), std::string::npos) << message;
}

}  // namespace
}  // namespace rapt::measure
