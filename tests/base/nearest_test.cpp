#include "rapt/base/nearest.h"

#include <gtest/gtest.h>

namespace rapt {
namespace {

TEST(Nearest, NamesWhatWasMeantAndNothingThatIsFar) {
  const std::string_view known[] = {"dropout", "d_model"};
  EXPECT_EQ(nearest("drpout", known), "dropout");
  EXPECT_EQ(nearest("layers", known), "");
  EXPECT_EQ(nearest(std::string(257, 'd'), known), "");
}

TEST(Edits, CountLettersInsertedDeletedChangedAndSwapped) {
  EXPECT_EQ(edits("dropout", "dropout"), 0u);
  EXPECT_EQ(edits("dropuot", "dropout"), 1u);
  EXPECT_EQ(edits("dropot", "dropout"), 1u);
  EXPECT_EQ(edits("dropoutt", "dropout"), 1u);
  EXPECT_EQ(edits("drapout", "dropout"), 1u);
  EXPECT_EQ(edits("", "dropout"), 7u);
}

}  // namespace
}  // namespace rapt
