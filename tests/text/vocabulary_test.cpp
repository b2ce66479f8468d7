#include "rapt/text/vocabulary.h"

#include <fstream>

#include "rapt/base/file.h"
#include "rapt/text/words.h"
#include "tests/testing/testing.h"

namespace rapt::text {
namespace {

using testing::error_of;
using testing::TemporaryFolder;
using Ids = std::vector<int32_t>;
using Words = std::vector<std::string>;

class VocabularyFile : public ::testing::Test {
 protected:
  Vocabulary read(const std::string& content, SpecialIds special = {}, const Limits& limits = {}) {
    std::ofstream(path_, std::ios::binary) << content;
    return Vocabulary::read(path_, special, limits);
  }
  std::string refusal(const std::string& content, SpecialIds special = {}) {
    try {
      read(content, special);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::data);
      return error.what();
    }
    ADD_FAILURE() << "accepted: " << content;
    return "";
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "words.txt";
};

Words words_of(const Vocabulary& vocabulary) {
  return Words(vocabulary.words().begin(), vocabulary.words().end());
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Words, StandBetweenSpacesAndTabs) {
  using Views = std::vector<std::string_view>;
  EXPECT_EQ(split_words("  i have\t\ta  friend . "), (Views{"i", "have", "a", "friend", "."}));
  EXPECT_EQ(split_words(" \t "), Views{});
  EXPECT_EQ(split_words(""), Views{});
  const std::string one = "a\u00A0b\u3000c\vd\re";
  EXPECT_EQ(split_words(one), Views{one});
  EXPECT_EQ(join_words(split_words(" a \t b ")), "a b");
}

TEST(Words, QuotedWordsAreShortAndHarmless) {
  EXPECT_EQ(quote_word("\u6211"), "'\u6211'");
  EXPECT_EQ(quote_word("a\x1b[2Jb"), "'a\\x1b[2Jb'");
  EXPECT_EQ(quote_word(std::string(100, 'x')), "'" + std::string(40, 'x') + "...'");
  EXPECT_EQ(quote_word(std::string(39, 'x') + "\u6211\u6211"), "'" + std::string(39, 'x') + "...'");
}

TEST_F(VocabularyFile, IdsAreLineNumbers) {
  const Vocabulary vocabulary =
      read("P\ni\nhave\n\u6211\nS\nE\n", {.pad = 0, .start = 4, .end = 5});
  EXPECT_EQ(vocabulary.size(), 6);
  EXPECT_EQ(vocabulary.word(3), "\u6211");
  EXPECT_EQ(vocabulary.find("have"), 2);
  EXPECT_EQ(vocabulary.find("had"), std::nullopt);
  EXPECT_EQ(vocabulary.encode(" have \u6211 i", "x"), (Ids{2, 3, 1}));
  EXPECT_EQ(vocabulary.decode(Ids{4, 2, 3, 5, 0, 0}), "have \u6211");
  EXPECT_TRUE(holds(error_of([&] { vocabulary.word(6); }), "expected an id below 6, got 6"));
  EXPECT_TRUE(holds(error_of([&] { vocabulary.decode(Ids{-1}); }), "got -1"));
}

TEST_F(VocabularyFile, R39_CarriageReturnsAndByteOrderMarkDoNotEnterWords) {
  EXPECT_EQ(words_of(read("\xEF\xBB\xBFone\r\ntwo\r\nthree")), (Words{"one", "two", "three"}));
}

TEST_F(VocabularyFile, R39_EveryWordSurvivesWritingAndReading) {
  const Words words = {
      "\xEF\xBB\xBF"
      "marked",
      "\r",
      "ends\r",
      "\r\r",
      "\u2028",
      "a\u0085",
      "\u6211"};
  Vocabulary(words).write(path_);
  EXPECT_EQ(words_of(Vocabulary::read(path_)), words);
}

TEST_F(VocabularyFile, R40_InvalidUtf8IsRefusedWithLineAndByte) {
  EXPECT_TRUE(holds(refusal("one\nt\xE9o\n"), "words.txt:2: invalid UTF-8 at byte 2"));
  EXPECT_TRUE(holds(refusal("one\nt\xE2\x82"), "words.txt:2: invalid UTF-8 at byte 2"));
}

TEST_F(VocabularyFile, R41_DuplicatesAreRefusedWithBothLines) {
  EXPECT_TRUE(holds(refusal("<pad>\n<s>\na\n<pad>\n"),
                    "line 4: the entry '<pad>' stands at line 1 already"));
  EXPECT_TRUE(holds(refusal("a\nb\nb\n"), "line 3: the entry 'b' stands at line 2 already"));
  EXPECT_TRUE(holds(refusal("a\n\nb\n"), "line 2: the entry is empty"));
  EXPECT_TRUE(holds(refusal("a\r\n\r\n"), "line 2: the entry is empty"));
  EXPECT_TRUE(holds(refusal("a\nb 17\n"), "line 2: the entry 'b 17' holds a space"));
}

TEST_F(VocabularyFile, R41_SpecialEntriesAreFoundByIdAndNotAddedAgain) {
  const Vocabulary vocabulary =
      read("<pad>\n<s>\n</s>\n<unk>\na\n", {.pad = 0, .start = 1, .end = 2, .unk = 3});
  EXPECT_EQ(vocabulary.size(), 5);
  EXPECT_EQ(vocabulary.entry("</s>"), 2);
  EXPECT_EQ(vocabulary.entry("</pad>"), std::nullopt);
}

TEST_F(VocabularyFile, SpecialIdsMustFit) {
  EXPECT_TRUE(holds(refusal("a\nb\n", {.pad = 2}), "the id of the padding entry is 2"));
  EXPECT_TRUE(holds(refusal("a\nb\n", {.end = -1}), "the id of the end entry is -1"));
  EXPECT_TRUE(holds(refusal("a\nb\n", {.start = 1, .unk = 1}), "have the same id 1"));
  EXPECT_EQ(read("a\nb\n", {.pad = 0, .start = 0, .end = 0}).size(), 2);
}

TEST_F(VocabularyFile, EmptyAndOverlongFilesAreRefused) {
  EXPECT_TRUE(holds(refusal(""), "the file is empty"));
  Limits limits;
  limits.vocabulary = 2;
  EXPECT_EQ(read("a\nb\n", {}, limits).size(), 2);
  EXPECT_TRUE(holds(error_of([&] { read("a\nb\nc\n", {}, limits); }), "more than 2 entries"));
}

TEST_F(VocabularyFile, R45_TextNeverBecomesControlEntries) {
  const Vocabulary vocabulary =
      read("<pad>\n<s>\n</s>\n<unk>\na\n", {.pad = 0, .start = 1, .end = 2, .unk = 3});
  EXPECT_EQ(vocabulary.encode("a </s> <s> <pad> a <unk>", "x"), (Ids{4, 3, 3, 3, 4, 3}));
  EXPECT_EQ(vocabulary.find("</s>"), std::nullopt);
}

TEST_F(VocabularyFile, UnknownWordWithoutUnkIsNamedWithItsLine) {
  const Vocabulary vocabulary = read("P\ni\nE\n", {.pad = 0, .end = 2});
  try {
    vocabulary.encode("i E", "train.en:7");
    FAIL() << "an unknown word was encoded";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_STREQ(error.what(),
                 "train.en:7: the vocabulary has no word 'E' and no <unk> to stand for it");
  }
}

TEST_F(VocabularyFile, FailedWriteLeavesTheOldFile) {
  Vocabulary(Words{"old"}).write(path_);
  set_file_fault([](std::string_view operation, const std::filesystem::path&) {
    return operation == "fsync" ? ENOSPC : 0;
  });
  error_of([&] { Vocabulary(Words{"new"}).write(path_); });
  set_file_fault(nullptr);
  EXPECT_EQ(words_of(Vocabulary::read(path_)), Words{"old"});
}

TEST(WordCounter, OrdersByCountThenBytes) {
  WordCounter counter;
  counter.add("b a c a");
  counter.add("\u6211 c a d");
  const Vocabulary vocabulary = counter.build();
  EXPECT_EQ(words_of(vocabulary),
            (Words{"<pad>", "<s>", "</s>", "<unk>", "a", "c", "b", "d", "\u6211"}));
  EXPECT_EQ(vocabulary.special().pad, 0);
  EXPECT_EQ(vocabulary.special().start, 1);
  EXPECT_EQ(vocabulary.special().end, 2);
  EXPECT_EQ(vocabulary.special().unk, 3);
}

TEST(WordCounter, RareWordsAreLeftToUnk) {
  WordCounter counter;
  counter.add("a a a b b c");
  EXPECT_EQ(words_of(counter.build({.min_count = 2})),
            (Words{"<pad>", "<s>", "</s>", "<unk>", "a", "b"}));
  EXPECT_EQ(words_of(counter.build({.max_words = 1})),
            (Words{"<pad>", "<s>", "</s>", "<unk>", "a"}));
  EXPECT_EQ(words_of(counter.build({.unk = false})),
            (Words{"<pad>", "<s>", "</s>", "a", "b", "c"}));
  EXPECT_TRUE(holds(error_of([&] { counter.build({.min_count = 2, .unk = false}); }),
                    "1 of 3 words would be left out"));
  error_of([&] { counter.build({.min_count = 0}); });
}

TEST(WordCounter, R45_SpellingsOfSpecialEntriesAreNotCounted) {
  WordCounter counter;
  counter.add("a </s> <unk> <s> <pad>");
  const Vocabulary vocabulary = counter.build();
  EXPECT_EQ(vocabulary.size(), 5);
  EXPECT_EQ(vocabulary.encode("</s> a", "x"), (Ids{3, 4}));
}

}  // namespace
}  // namespace rapt::text
