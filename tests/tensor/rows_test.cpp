#include "rapt/tensor/rows.h"

#include "tests/testing/testing.h"

namespace rapt {
namespace {

using testing::error_of;

TEST(Rows, PackedSentencesFollowEachOther) {
  const Rows rows = Rows::packed({3, 0, 2});
  EXPECT_EQ(rows.sentences(), 3);
  EXPECT_EQ(rows.tokens(), 5);
  EXPECT_EQ(rows.longest(), 3);
  EXPECT_EQ(rows.last_position(), 2);
  EXPECT_FALSE(rows.equal_lengths());
  EXPECT_TRUE(rows.is_packed());
  EXPECT_EQ(rows[1].row, 3);
  EXPECT_EQ(rows[1].count, 0);
  EXPECT_EQ(rows[2].row, 3);
  const uint32_t positions[] = {0, 1, 2, 0, 1};
  const uint64_t samples[] = {0, 0, 0, 2, 2};
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(rows.ids()[i].position, positions[i]) << i;
    EXPECT_EQ(rows.ids()[i].sample, samples[i]) << i;
  }
}

TEST(Rows, SamplesNameTheSentences) {
  const Rows rows =
      Rows::packed(std::vector<int64_t>{1, 2}, std::vector<uint64_t>{7, uint64_t{1} << 40});
  EXPECT_EQ(rows.ids()[0].sample, 7u);
  EXPECT_EQ(rows.ids()[2].sample, uint64_t{1} << 40);
  EXPECT_NE(error_of([] {
              Rows::packed(std::vector<int64_t>{1, 2}, std::vector<uint64_t>{7});
            }).find("each of 2 lengths, got 1"),
            std::string::npos);
}

TEST(Rows, EqualLengthsAreAMatrix) {
  const Rows rows = Rows::equal(2, 3);
  EXPECT_TRUE(rows.equal_lengths());
  EXPECT_EQ(rows.tokens(), 6);
  EXPECT_EQ(rows[1].row, 3);
  EXPECT_TRUE(Rows::packed({4, 4}).equal_lengths());
  EXPECT_EQ(Rows::equal(0, 3).tokens(), 0);
  EXPECT_EQ(Rows::equal(3, 0).sentences(), 3);
  EXPECT_EQ(Rows::equal(3, 0).last_position(), -1);
}

TEST(Rows, WithoutSentences) {
  const Rows rows;
  EXPECT_EQ(rows.sentences(), 0);
  EXPECT_EQ(rows.tokens(), 0);
  EXPECT_EQ(rows.longest(), 0);
  EXPECT_TRUE(rows.equal_lengths());
}

TEST(Rows, SegmentsMayHaveGapsAndStartAnywhere) {
  const Rows rows({{.row = 2, .count = 2, .position = 5, .sample = 9},
                   {.row = 6, .count = 1, .position = 0, .sample = 8}});
  EXPECT_EQ(rows.tokens(), 7);
  EXPECT_FALSE(rows.is_packed());
  EXPECT_EQ(rows.last_position(), 6);
  EXPECT_EQ(rows.ids()[3].position, 6u);
  EXPECT_EQ(rows.ids()[6].sample, 8u);
}

TEST(Rows, RefusesWhatCannotBe) {
  error_of([] { Rows::packed({2, -1}); });
  error_of([] { Rows::equal(-1, 2); });
  error_of([] { Rows::equal(2, -1); });
  EXPECT_NE(error_of([] {
              Rows({{.row = 0, .count = 3, .position = 0, .sample = 0},
                    {.row = 2, .count = 1, .position = 0, .sample = 1}});
            }).find("without overlap"),
            std::string::npos);
  error_of([] { Rows({{.row = 0, .count = 1, .position = -1, .sample = 0}}); });
  error_of([] { Rows({{.row = 0, .count = 1, .position = int64_t{1} << 32, .sample = 0}}); });
}

}  // namespace
}  // namespace rapt
