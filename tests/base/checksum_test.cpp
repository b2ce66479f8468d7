#include "rapt/base/checksum.h"

#include <string>

#include "rapt/base/file.h"
#include "tests/testing/testing.h"

namespace rapt {
namespace {

using namespace testing;

std::string sum_of(std::string_view text, size_t piece = 1000) {
  Checksum sum;
  for (size_t begin = 0; begin < text.size(); begin += piece)
    sum.add(std::as_bytes(std::span(text.substr(begin, piece))));
  return sum.text();
}

// As `xxhsum -H1` and the published test vectors say.
TEST(Checksum, IsXxh64) {
  EXPECT_EQ(sum_of(""), "ef46db3751d8e999");
  EXPECT_EQ(sum_of("a"), "d24ec4f1a98c6e5b");
  EXPECT_EQ(sum_of("abc"), "44bc2cf5ad770999");
  EXPECT_EQ(sum_of("Nobody inspects the spammish repetition"), "fbcea83c8a378bf1");
}

TEST(Checksum, PiecesDoNotMatterAndEveryBitDoes) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += static_cast<char>(i * 7);
  const std::string whole = sum_of(text);
  for (const size_t piece : {1, 3, 8, 31, 32, 33, 64, 299}) EXPECT_EQ(sum_of(text, piece), whole);
  for (size_t i = 0; i < text.size(); ++i) {
    std::string other = text;
    other[i] = static_cast<char>(other[i] ^ 1);
    EXPECT_NE(sum_of(other), whole) << i;
  }
  EXPECT_NE(sum_of(text + '\0'), whole);
}

TEST(Checksum, OfAFileIsThatOfItsBytes) {
  const TemporaryFolder folder;
  const std::string text(10'000'000, 'x');
  write_file(folder.path() / "file", text);
  EXPECT_EQ(file_checksum(folder.path() / "file"), sum_of(text, text.size()));
  write_file(folder.path() / "empty", "");
  EXPECT_EQ(file_checksum(folder.path() / "empty"), "ef46db3751d8e999");
  EXPECT_NE(error_of([&] { file_checksum(folder.path() / "none"); }), "");
}

}  // namespace
}  // namespace rapt
