#include "rapt/optim/schedule.h"

#include <cmath>
#include <numbers>
#include <vector>

#include "tests/testing/testing.h"

namespace rapt::optim {
namespace {

using rapt::testing::error_of;

const std::vector<Schedule> kAll = {
    {.rate = 2e-3, .warmup = 10},
    noam(512, 20),
    {.decay = Decay::inverse_sqrt, .rate = 1e-3, .warmup = 7},
    {.decay = Decay::linear, .rate = 1e-3, .warmup = 5, .total = 80, .final_rate = 1e-5},
    {.decay = Decay::cosine, .rate = 1e-3, .warmup = 5, .total = 100, .final_rate = 1e-5},
    {.decay = Decay::step, .rate = 1e-3, .warmup = 3, .every = 10, .factor = 0.5}};

TEST(Schedule, R19_AResumedSeriesEqualsTheUnbrokenOneBitForBit) {
  for (const Schedule& schedule : kAll) {
    std::vector<double> unbroken, resumed;
    for (int64_t step = 1; step <= 100; ++step) unbroken.push_back(schedule.at(step));
    for (int64_t step = 1; step <= 45; ++step) resumed.push_back(schedule.at(step));
    const Schedule restored = schedule;  // its settings are all there is to restore
    for (int64_t step = 46; step <= 100; ++step) resumed.push_back(restored.at(step));
    EXPECT_EQ(unbroken, resumed);
    EXPECT_NE(unbroken[44], unbroken[0]);
  }
}

TEST(Schedule, WarmsUpInALineFromTheFirstStepOn) {
  for (const Schedule& schedule : kAll) {
    for (int64_t step = 1; step <= schedule.warmup; ++step) {
      EXPECT_NEAR(schedule.at(step),
                  schedule.rate * static_cast<double>(step) / static_cast<double>(schedule.warmup),
                  1e-17);
    }
    EXPECT_GT(schedule.at(1), 0);
    EXPECT_EQ(schedule.at(schedule.warmup), schedule.rate);
  }
}

TEST(Schedule, NoamFollowsThePaper) {
  const Schedule schedule = noam(512, 4000, 2);
  for (const int64_t step : {1, 100, 3999, 4000, 4001, 100000}) {
    const double s = static_cast<double>(step);
    const double wanted =
        2 / std::sqrt(512.0) * std::min(1 / std::sqrt(s), s * std::pow(4000.0, -1.5));
    EXPECT_NEAR(schedule.at(step) / wanted, 1, 1e-14) << step;
  }
}

TEST(Schedule, EachDecayFollowsItsFormula) {
  EXPECT_EQ(kAll[0].at(11), 2e-3);
  EXPECT_EQ(kAll[0].at(1'000'000'000'000), 2e-3);
  EXPECT_NEAR(kAll[2].at(28), 1e-3 / 2, 1e-17);
  EXPECT_NEAR(kAll[3].at(5 + 15), 1e-3 + (1e-5 - 1e-3) * 0.2, 1e-17);
  EXPECT_NEAR(kAll[3].at(80), 1e-5, 1e-17);
  EXPECT_NEAR(kAll[3].at(500), 1e-5, 1e-17);
  EXPECT_NEAR(kAll[4].at(5 + 19), 1e-5 + (1e-3 - 1e-5) * (1 + std::cos(std::numbers::pi * 0.2)) / 2,
              1e-17);
  EXPECT_NEAR(kAll[4].at(100), 1e-5, 1e-17);
  EXPECT_NEAR(kAll[4].at(101), 1e-5, 1e-17);
  EXPECT_EQ(kAll[5].at(13), 1e-3);
  EXPECT_EQ(kAll[5].at(14), 0.5e-3);
  EXPECT_EQ(kAll[5].at(23), 0.5e-3);
  EXPECT_EQ(kAll[5].at(24), 0.25e-3);
}

TEST(Schedule, WithoutWarmUpStartsAtItsRate) {
  EXPECT_EQ((Schedule{.rate = 0.5}.at(1)), 0.5);
  EXPECT_EQ((Schedule{.decay = Decay::inverse_sqrt, .rate = 0.5}.at(1)), 0.5);
  EXPECT_EQ((Schedule{.decay = Decay::inverse_sqrt, .rate = 0.5}.at(4)), 0.25);
  EXPECT_EQ((Schedule{.decay = Decay::step, .rate = 0.5, .every = 1}.at(1)), 0.5);
}

TEST(Schedule, RefusesSettingsThatCannotBe) {
  error_of([] { Schedule{}.at(0); });
  error_of([] { Schedule{.rate = -1}.at(1); });
  error_of([] { Schedule{.rate = NAN}.at(1); });
  error_of([] { Schedule{.warmup = -1}.at(1); });
  EXPECT_NE(error_of([] {
              Schedule{.decay = Decay::cosine, .warmup = 10, .total = 10}.at(1);
            }).find("more than 10 steps"),
            std::string::npos);
  error_of([] { Schedule{.decay = Decay::linear, .total = 5, .final_rate = -1}.at(1); });
  error_of([] { Schedule{.decay = Decay::step}.at(1); });
  error_of([] { Schedule{.decay = Decay::step, .every = 2, .factor = NAN}.at(1); });
  error_of([] { noam(0, 10); });
  error_of([] { noam(512, 0); });
}

}  // namespace
}  // namespace rapt::optim
