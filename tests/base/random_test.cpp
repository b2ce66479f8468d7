#include "rapt/base/random.h"

#include "tests/testing/testing.h"

namespace rapt {
namespace {

// Known answers of the reference implementation, Random123 1.14, file kat_vectors.
TEST(Philox, MatchesTheKnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Rng, SeekRestoresTheStream) {
  Rng a(7), b(7);
  for (int i = 0; i < 13; ++i) a.next();
  b.seek(13);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(a.next(), b.next());
}

TEST(Rng, NumbersHaveTheirMoments) {
  Rng rng(3);
  double sum = 0, squares = 0, uniform = 0;
  const int n = 200000;
  for (int i = 0; i < n; ++i) {
    const double x = rng.normal();
    sum += x;
    squares += x * x;
    uniform += rng.uniform(-1, 3);
  }
  EXPECT_NEAR(sum / n, 0, 0.01);
  EXPECT_NEAR(squares / n, 1, 0.02);
  EXPECT_NEAR(uniform / n, 1, 0.02);
}

TEST(Rng, BelowStaysBelow) {
  Rng rng(3);
  int64_t counts[7] = {};
  for (int i = 0; i < 70000; ++i) ++counts[rng.below(7)];
  for (const int64_t count : counts) EXPECT_NEAR(static_cast<double>(count), 10000, 500);
  EXPECT_NE(testing::error_of([&] { rng.below(0); }).find("positive limit"), std::string::npos);
}

TEST(Dropout, TheThresholdCountsWords) {
  EXPECT_EQ(dropout_threshold(0), 0u);
  EXPECT_EQ(dropout_threshold(0.5), 0x80000000u);
  testing::error_of([] { dropout_threshold(1); });
}

}  // namespace
}  // namespace rapt
