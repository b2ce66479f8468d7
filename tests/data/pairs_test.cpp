#include "rapt/data/pairs.h"

#include <fstream>

#include "tests/testing/testing.h"

namespace rapt::data {
namespace {

using testing::TemporaryFolder;
using text::Vocabulary;
using Ids = std::vector<int32_t>;

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Ids ids_of(std::span<const int32_t> ids) { return Ids(ids.begin(), ids.end()); }

class Pairs : public ::testing::Test {
 protected:
  void write(const std::string& source, const std::string& target) {
    std::ofstream(source_, std::ios::binary) << source;
    std::ofstream(target_, std::ios::binary) << target;
  }
  PairCorpus read(const PairOptions& options = {}) {
    return read_pairs({.source = source_, .target = target_}, source_words_, target_words_,
                      options);
  }
  std::string refusal(const PairOptions& options = {}) {
    try {
      read(options);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::data);
      return error.what();
    }
    ADD_FAILURE() << "accepted";
    return "";
  }

  TemporaryFolder folder_;
  std::filesystem::path source_ = folder_.path() / "a.txt", target_ = folder_.path() / "b.txt";
  Vocabulary source_words_{{"a", "b", "c"}};
  Vocabulary target_words_{{"x", "y", "z"}};
};

TEST_F(Pairs, KeepTheOrderOfTheFiles) {
  write("a b\nc\n", "x\nz y");
  const PairCorpus corpus = read();
  ASSERT_EQ(corpus.size(), 2);
  EXPECT_EQ(ids_of(corpus.sources[0]), (Ids{0, 1}));
  EXPECT_EQ(ids_of(corpus.targets[1]), (Ids{2, 1}));
  EXPECT_EQ(corpus.sources.length(0), 2);
  EXPECT_EQ(corpus.lines, (std::vector<uint64_t>{0, 1}));
  testing::error_of([&] { corpus.sources[2]; });
}

TEST_F(Pairs, R36_PairsWithAnEmptySideAreSkippedTogether) {
  write("a\n\nb\n \t\nc\n", "x\ny\n\n\nz\n");
  const PairCorpus corpus = read();
  EXPECT_EQ(corpus.empty_pairs, 3);
  EXPECT_EQ(corpus.lines, (std::vector<uint64_t>{0, 4}));
  EXPECT_EQ(ids_of(corpus.sources[1]), Ids{2});
  EXPECT_EQ(ids_of(corpus.targets[1]), Ids{2});
}

TEST_F(Pairs, R38_UnequalFilesAreRefusedWithTheFirstLineThatDiffers) {
  write("a\nb\n", "x\ny\nz\nx\n");
  EXPECT_TRUE(
      holds(refusal(), "a.txt and " + target_.string() +
                           " do not belong together: the first "
                           "ends after line 2, the second has a line 3 and 4 lines in all"));
  write("a\nb\nc\n", "x\ny");
  EXPECT_TRUE(
      holds(refusal(), "b.txt and " + source_.string() +
                           " do not belong together: the first "
                           "ends after line 2, the second has a line 3 and 3 lines in all"));
}

TEST_F(Pairs, R38_OtherLineBreaksDoNotShiftTheLines) {
  source_words_ = Vocabulary({"a", "b\u2028c", "d\u0085e\vf\fg\rh"});
  write("a\nb\u2028c\nd\u0085e\vf\fg\rh\n", "x\ny\nz\n");
  EXPECT_EQ(read().size(), 3);
}

TEST_F(Pairs, R39_CarriageReturnsAndByteOrderMarksChangeNothing) {
  write(
      "\xEF\xBB\xBF"
      "a b\r\nc\r\n",
      "x\nz y\n");
  const PairCorpus corpus = read();
  EXPECT_EQ(ids_of(corpus.sources[0]), (Ids{0, 1}));
  EXPECT_EQ(ids_of(corpus.sources[1]), (Ids{2}));
}

TEST_F(Pairs, R40_InvalidUtf8IsRefusedOrReplaced) {
  write("a\nb\n", "x\n\xE9\n");
  EXPECT_TRUE(holds(refusal(), "b.txt:2: invalid UTF-8 at byte 1 of the line"));
  target_words_ = Vocabulary({"x", "\uFFFD"});
  const PairCorpus corpus = read({.lines = {.invalid = text::InvalidUtf8::replace}});
  EXPECT_EQ(corpus.replaced, 1);
  EXPECT_EQ(ids_of(corpus.targets[1]), Ids{1});
}

TEST_F(Pairs, FilesWithoutAPairAreRefused) {
  write("", "");
  EXPECT_TRUE(holds(refusal(), "hold no sentence pair to train on (0 pairs with an empty side"));
  write("\n", "x\n");
  EXPECT_TRUE(holds(refusal(), "(1 pairs with an empty side, 0 too long)"));
  std::filesystem::remove(source_);
  EXPECT_TRUE(holds(refusal(), "a.txt: cannot read it: No such file"));
}

TEST_F(Pairs, LongPairsAreRefusedOrSkipped) {
  write("a\na b c\nb\nc\n", "x\ny\nx y z x\nz\n");
  EXPECT_TRUE(holds(refusal({.max_source_words = 2}),
                    "a.txt:2: the sentence has 3 words, the model takes 2"));
  EXPECT_TRUE(holds(refusal({.max_target_words = 3}),
                    "b.txt:3: the sentence has 4 words, the model takes 3"));
  const PairCorpus corpus =
      read({.max_source_words = 2, .max_target_words = 3, .skip_too_long = true});
  EXPECT_EQ(corpus.too_long_pairs, 2);
  EXPECT_EQ(corpus.lines, (std::vector<uint64_t>{0, 3}));
  EXPECT_EQ(read({.max_source_words = 3, .max_target_words = 4}).size(), 4);
}

TEST_F(Pairs, UnknownWordIsNamedWithFileAndLine) {
  write("a\nb d\n", "x\ny\n");
  EXPECT_TRUE(holds(refusal(), "a.txt:2: the vocabulary has no word 'd'"));
}

TEST_F(Pairs, VocabulariesComeFromTheText) {
  write("b a\na\n", "y\ny z\n");
  const PairVocabularies built = build_vocabularies({.source = source_, .target = target_});
  EXPECT_EQ(built.source.vocabulary()->find("a"), 4);
  EXPECT_EQ(built.source.vocabulary()->find("b"), 5);
  EXPECT_EQ(built.target.vocabulary()->find("y"), 4);
  EXPECT_EQ(built.target.vocabulary()->find("a"), std::nullopt);
}

TEST_F(Pairs, ComeFromTheColumnsOfOneFile) {
  write("x\ta b\tCC-BY: somebody\n\ny\t\tthanks\nz y\tc\t\tmore\n", "");
  const PairFiles files = {.pairs = source_, .source_column = 2, .target_column = 1};
  const PairCorpus corpus = read_pairs(files, source_words_, target_words_);
  ASSERT_EQ(corpus.size(), 2);
  EXPECT_EQ(corpus.empty_pairs, 2);
  EXPECT_EQ(corpus.lines, (std::vector<uint64_t>{0, 3}));
  EXPECT_EQ(ids_of(corpus.sources[0]), (Ids{0, 1}));
  EXPECT_EQ(ids_of(corpus.targets[1]), (Ids{2, 1}));
}

TEST_F(Pairs, ALineThatLacksAColumnIsNamed) {
  write("x\ta\nx a\n", "");
  const std::string complaint =
      testing::error_of([&] { read_pairs({.pairs = source_}, target_words_, source_words_); });
  EXPECT_TRUE(holds(complaint, "a.txt:2: expected at least 2 columns")) << complaint;
}

TEST_F(Pairs, SubwordsAreLearntFromBothSides) {
  std::string source, target;
  for (int i = 0; i < 40; ++i) {
    source += "the dog sleeps under the tree\n";
    target += "der Hund schl\u00E4ft unter dem Baum\n";
  }
  write(source + "a\n\u3000\n", target + "\u3000\nb\n");
  const PairFiles files = {.source = source_, .target = target_};
  const PairVocabularies joint = build_subwords(files, {.vocabulary = 50});
  ASSERT_NE(joint.source.subwords(), nullptr);
  EXPECT_EQ(joint.source.subwords()->bytes(), joint.target.subwords()->bytes());
  const PairCorpus corpus = read_pairs(files, joint.source, joint.target);
  EXPECT_EQ(corpus.size(), 40);
  EXPECT_EQ(corpus.empty_pairs, 2);  // the ideographic space is none of the text's
  EXPECT_EQ(joint.target.decode(corpus.targets[0]), "der Hund schl\u00E4ft unter dem Baum");
}

TEST_F(Pairs, LinesOfOneMegabyteAreRead) {
  std::string line;
  while (line.size() < 1'000'000) line += "a b ";
  write(line + "\n", "x\n");
  EXPECT_EQ(read().sources.length(0), 500'000);
}

}  // namespace
}  // namespace rapt::data
