#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "rapt/base/profile.h"
#include "tests/testing/testing.h"

namespace rapt {
namespace {

class Profile : public ::testing::Test {
 protected:
  Profile() {
    reset_profile();
    set_profiling(true);
  }
  ~Profile() override {
    set_profiling(false);
    reset_profile();
  }
};

ProfileRow row_of(const std::string& name) {
  for (const ProfileRow& row : profile_rows()) {
    if (row.name == name) return row;
  }
  return {};
}

TEST_F(Profile, CountsNothingWhileItIsOff) {
  set_profiling(false);
  EXPECT_FALSE(profiling());
  { const ProfileScope scope("off"); }
  EXPECT_TRUE(profile_rows().empty());
}

TEST_F(Profile, AddsUpCallsTimesAndWork) {
  EXPECT_TRUE(profiling());
  for (int i = 0; i < 3; ++i) {
    const ProfileScope scope("product", 200, 30);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const ProfileRow row = row_of("product");
  EXPECT_EQ(row.calls, 3);
  EXPECT_GE(row.seconds, 0.003);
  EXPECT_EQ(row.flops, 600);
  EXPECT_EQ(row.bytes, 90);
}

TEST_F(Profile, EnclosedBlocksCountInBothRows) {
  {
    const ProfileScope layer("layer");
    const ProfileScope product("product", 5);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const std::vector<ProfileRow> rows = profile_rows();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].name, "layer");  // it lasts longer
  EXPECT_GE(rows[0].seconds, rows[1].seconds);
  EXPECT_GE(rows[1].seconds, 0.001);
}

TEST_F(Profile, EqualNamesAreOneRow) {
  static const char a[] = "same", b[] = "same";  // at two places
  { const ProfileScope scope(a); }
  { const ProfileScope scope(b); }
  EXPECT_EQ(row_of("same").calls, 2);
}

TEST_F(Profile, AddsUpThreadsEvenThoseThatEnded) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int call = 0; call < 200; ++call) {
        const ProfileScope scope("shared", 1);
        if (call % 50 == 0) profile_rows();  // reading while others count
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  { const ProfileScope scope("shared", 1); }
  EXPECT_EQ(row_of("shared").calls, 801);
  EXPECT_EQ(row_of("shared").flops, 801);
}

TEST_F(Profile, ResetForgetsAndAnOpenScopeCountsAfterIt) {
  { const ProfileScope scope("before"); }
  {
    const ProfileScope scope("open");
    reset_profile();
    EXPECT_TRUE(profile_rows().empty());
  }
  EXPECT_EQ(row_of("open").calls, 1);
  EXPECT_EQ(profile_rows().size(), 1u);
}

TEST_F(Profile, AScopeThatBeganIsCountedThoughProfilingEnds) {
  {
    const ProfileScope scope("began");
    set_profiling(false);
  }
  EXPECT_EQ(row_of("began").calls, 1);
}

}  // namespace
}  // namespace rapt
