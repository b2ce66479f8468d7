#include "rapt/base/utf8.h"

#include "tests/testing/testing.h"

namespace rapt {
namespace {

using namespace std::string_literals;
using testing::error_of;

TEST(Utf8, TakesEveryCharacterThereAndBack) {
  for (char32_t code_point = 0; code_point <= 0x10FFFF; ++code_point) {
    if (code_point == 0xD800) code_point = 0xE000;
    std::string text;
    append_utf8(text, code_point);
    ASSERT_EQ(first_invalid_utf8(text), std::nullopt);
    ASSERT_EQ(decode_utf8(text), std::u32string(1, code_point));
  }
  EXPECT_EQ(encode_utf8(U"aé€🤗"), "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\xA4\x97");
  EXPECT_EQ(decode_utf8("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\xA4\x97"), U"aé€🤗");
}

TEST(Utf8, RefusesToWriteWhatIsNoCharacter) {
  std::string text = "a";
  EXPECT_EQ(error_of([&] { append_utf8(text, 0xD800); }), "UTF-8: U+D800 is not a character");
  EXPECT_EQ(error_of([&] { append_utf8(text, 0xDFFF); }), "UTF-8: U+DFFF is not a character");
  EXPECT_EQ(error_of([&] { append_utf8(text, 0x110000); }), "UTF-8: U+110000 is not a character");
  EXPECT_EQ(text, "a");
}

// Bytes that are no text, and how many characters U+FFFD stand for them.
struct Wrong {
  const char* kind;
  std::string bytes;
  int64_t replaced;
};

const std::vector<Wrong>& wrong_bytes() {
  static const std::vector<Wrong> all = {
      {"a byte that never occurs", "\xFF", 1},
      {"Latin-1", "\xE9", 1},
      {"a continuation alone", "\x8E", 1},
      {"a 2-byte character cut", "\xC3", 1},
      {"a 3-byte character cut to 1", "\xE2", 1},
      {"a 3-byte character cut to 2", "\xE2\x82", 1},
      {"a 4-byte character cut to 3", "\xF0\x9F\xA4", 1},
      {"overlong slash in 2 bytes", "\xC0\xAF", 2},
      {"overlong NUL in 2 bytes", "\xC0\x80", 2},
      {"overlong in 2 bytes, largest", "\xC1\xBF", 2},
      {"overlong in 3 bytes", "\xE0\x80\xAF", 3},
      {"overlong in 3 bytes, largest", "\xE0\x9F\xBF", 3},
      {"overlong in 4 bytes", "\xF0\x80\x80\xAF", 4},
      {"overlong in 4 bytes, largest", "\xF0\x8F\xBF\xBF", 4},
      {"the first surrogate", "\xED\xA0\x80", 3},
      {"the last surrogate", "\xED\xBF\xBF", 3},
      {"above U+10FFFF", "\xF4\x90\x80\x80", 4},
      {"far above", "\xF5\x80\x80\x80", 4},
      {"a form of 5 bytes", "\xF8\x88\x80\x80\x80", 5},
      {"a first byte before another", "\xE2\xC3", 2},
  };
  return all;
}

TEST(Utf8, R40_WrongBytesAreFoundWhereTheyBegin) {
  for (const Wrong& wrong : wrong_bytes()) {
    for (const std::string& before :
         {""s, "a"s, "1234567"s, "12345678"s, "\0"s, "é"s, "1234567🤗"s}) {
      for (const std::string& after : {""s, "a"s, "é"s, "12345678901234567"s}) {
        EXPECT_EQ(first_invalid_utf8(before + wrong.bytes + after), before.size()) << wrong.kind;
      }
    }
    EXPECT_EQ(error_of([&] { decode_utf8("ab" + wrong.bytes); }).substr(0, 14), "UTF-8: byte 2 ")
        << wrong.kind;
  }
  EXPECT_EQ(error_of([] { decode_utf8("ab\xE9"); }),
            "UTF-8: byte 2 (0xE9) begins no valid character");
}

TEST(Utf8, R40_ReplacingGivesValidTextAndACount) {
  for (const Wrong& wrong : wrong_bytes()) {
    int64_t replaced = 10;
    const std::string text = replace_invalid_utf8("a" + wrong.bytes + "é", replaced);
    EXPECT_EQ(replaced - 10, wrong.replaced) << wrong.kind;
    EXPECT_EQ(first_invalid_utf8(text), std::nullopt) << wrong.kind;
    std::u32string expected(static_cast<size_t>(wrong.replaced) + 2, U'\uFFFD');
    expected.front() = U'a';
    expected.back() = U'é';
    EXPECT_EQ(decode_utf8(text), expected) << wrong.kind;
  }
}

TEST(Utf8, R40_NulIsACharacter) {
  EXPECT_EQ(first_invalid_utf8("a\0b"s), std::nullopt);
  EXPECT_EQ(decode_utf8("a\0b"s), U"a\0b"s);
  int64_t replaced = 0;
  EXPECT_EQ(replace_invalid_utf8("a\0b"s, replaced), "a\0b"s);
  EXPECT_EQ(replaced, 0);
}

// Every string of three bytes whose first begins a longer character, against a slow judgement: what
// decodes must encode to itself.
TEST(Utf8, JudgesEveryStringOfThreeBytes) {
  int64_t valid = 0;
  for (int a = 0xC0; a < 0x100; ++a) {
    for (int b = 0; b < 0x100; ++b) {
      for (const int c : {0x00, 0x41, 0x7F, 0x80, 0x9F, 0xBF, 0xC0, 0xC2, 0xFF}) {
        const std::string text = {static_cast<char>(a), static_cast<char>(b), static_cast<char>(c)};
        if (first_invalid_utf8(text)) continue;
        ++valid;
        ASSERT_EQ(encode_utf8(decode_utf8(text)), text);
      }
    }
  }
  // 30 first bytes of 2-byte characters x 64 x 3 ASCII; 3-byte ones: 32 of E0, 14 times 64, 32
  // of ED, each with 3 continuations.
  EXPECT_EQ(valid, 30 * 64 * 3 + (32 + 14 * 64 + 32) * 3);
}

}  // namespace
}  // namespace rapt
