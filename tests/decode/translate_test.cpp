#include "rapt/decode/translate.h"

#include "rapt/base/runtime.h"
#include "tests/decode/lines.h"

namespace rapt::decode {
namespace {

using namespace testing;

TEST(TranslateLines, R36_EveryLineGivesOneAndBlankOnesNothing) {
  const Translator t = make_translator(1);
  EXPECT_TRUE(translations(t, "").empty());
  for (const char* text : {"\n", "   \n", "\t", " \r\n"}) {
    const auto lines = translations(t, text);
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines[0].text + lines[0].refused, "");
  }
  const auto lines = translations(t, "a\n\nb");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[1].text, "");
  EXPECT_EQ(lines[0].text, translations(t, "a")[0].text);
  EXPECT_EQ(lines[2].text, translations(t, "b")[0].text);
  EXPECT_EQ(lines[2].line, 3);
}

TEST(TranslateLines, R37_RefusedLinesAreNamedAndTheOthersGoOn) {
  const Translator t = make_translator(1);
  std::string longer = "a";
  for (int i = 0; i < 12; ++i) longer += " a";  // the model takes 12
  const text::LineOptions short_lines{.limits = {.line_bytes = 40}};
  const auto lines =
      translations(t, "a\n" + longer + "\nb\n\xFF\n" + std::string(50, 'c') + "\na\n",
                   {.batch = 2, .greedy = {}}, short_lines);
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_NE(lines[1].refused.find("in:2: the line has 13 words, the model takes 12"),
            std::string::npos);
  EXPECT_NE(lines[3].refused.find("in:4: invalid UTF-8"), std::string::npos);
  EXPECT_NE(lines[4].refused.find("in:5: the line is longer than 40 bytes"), std::string::npos);
  for (const size_t i : {1u, 3u, 4u}) EXPECT_EQ(lines[i].text, "");
  for (const size_t i : {0u, 2u, 5u}) EXPECT_EQ(lines[i].refused, "");
  EXPECT_EQ(lines[5].text, lines[0].text);
  EXPECT_EQ(lines[5].line, 6);
}

TEST(TranslateLines, WhatWasReadBeforeReadingFailsIsTranslated) {
  struct Failing : std::streambuf {
    std::string text = "a\nb\n";
    bool given = false;
    int_type underflow() override {
      if (given) throw std::runtime_error("gone");
      given = true;
      setg(text.data(), text.data(), text.data() + text.size());
      return traits_type::to_int_type(text[0]);
    }
  } source;
  std::istream input(&source);
  text::LineReader reader(input, "in");
  const Translator t = make_translator(1);
  int64_t lines = 0;
  const std::string message =
      error_of([&] { translate_lines(t, reader, {}, [&](const Translation&) { ++lines; }); });
  EXPECT_EQ(message, "in: reading fails after line 2");
  EXPECT_EQ(lines, 2);
}

// Lines of all lengths, blank and refused ones among them: several windows of the smaller batches.
std::string mixed_lines(int64_t count) {
  Rng rng(5);
  std::string text;
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t words = rng.below(14); words > 0; --words) {
      text += static_cast<char>('a' + rng.below(6));
      text += words > 1 ? " " : "";
    }
    text += '\n';
  }
  return text;
}

void expect_alike(const std::vector<Translation>& lines, const std::vector<Translation>& expected) {
  ASSERT_EQ(lines.size(), expected.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i].line, static_cast<int64_t>(i) + 1);
    EXPECT_EQ(lines[i].text, expected[i].text);
    EXPECT_EQ(lines[i].refused, expected[i].refused);
    EXPECT_EQ(lines[i].decoded.score, expected[i].decoded.score);  // bits
    EXPECT_EQ(lines[i].decoded.margin, expected[i].decoded.margin);
    ASSERT_EQ(lines[i].n_best.size(), expected[i].n_best.size());
    for (size_t n = 0; n < lines[i].n_best.size(); ++n) {
      EXPECT_EQ(lines[i].n_best[n].text, expected[i].n_best[n].text);
      EXPECT_EQ(lines[i].n_best[n].hypothesis.score, expected[i].n_best[n].hypothesis.score);
    }
  }
}

TEST(TranslateLines, R31_NeitherBatchNorSortingNorStreamingNorThreadsChangeALine) {
  const Translator t = make_translator(3);
  const std::string text = mixed_lines(120);
  for (const int64_t beam : {1, 3}) {
    TranslateOptions options;
    if (beam > 1) options.beam = BeamOptions{.beam = beam, .n_best = 2, .max_length_ratio = 2};
    options.batch = 1;
    options.ready = [] { return false; };  // line by line
    const auto alone = translations(t, text, options);
    ASSERT_EQ(alone.size(), 120u);
    Rng rng(2);
    for (const int threads : {1, 3}) {
      Runtime runtime({.threads = threads, .log = {}});
      const Runtime::Scope scope(runtime);
      for (const int64_t batch : {1, 2, 7, 32, 1024}) {
        options.batch = batch;
        options.ready = {};
        expect_alike(translations(t, text, options), alone);
        options.ready = [&] { return rng.below(8) > 0; };
        expect_alike(translations(t, text, options), alone);
      }
    }
  }
}

TEST(TranslateLines, AnAnswerComesBeforeALineThatWouldBeWaitedFor) {
  const Translator t = make_translator(1);
  std::istringstream input(mixed_lines(50));
  text::LineReader reader(input, "in");
  int64_t answers = 0;
  const auto ready = [&] {  // a writer who waits after each third line
    return reader.number() % 3 != 0 || answers == reader.number();
  };
  translate_lines(t, reader, {.ready = ready}, [&](const Translation& line) {
    EXPECT_EQ(line.line, ++answers);
    EXPECT_EQ(reader.number(), std::min<int64_t>(50, (line.line + 2) / 3 * 3));
  });
  EXPECT_EQ(answers, 50);
}

TEST(TranslateLines, R31_SamplesPrefixesAndAlignmentsAreThoseOfTheLineAlone) {
  const Translator t = make_translator(3);
  const std::string text = mixed_lines(120);
  std::string prefix_text;
  for (int i = 0; i < 120; ++i) prefix_text += i % 3 == 0 ? "\n" : i % 3 == 1 ? "y x\n" : "z\n";
  for (const bool draws : {false, true}) {
    TranslateOptions options{.alignments = true};
    if (draws) options.sample = SampleOptions{.seed = 5, .max_length_ratio = 2};
    const auto with_prefixes = [&] {
      std::istringstream input(prefix_text);
      text::LineReader prefixes(input, "prefixes");
      options.prefixes = &prefixes;
      return translations(t, text, options);
    };
    options.batch = 1;
    options.ready = [] { return false; };
    const auto alone = with_prefixes();
    int begun = 0;
    for (const Translation& line : alone) {
      if (line.source.empty()) continue;
      const std::string prefix = line.line % 3 == 1 ? "" : line.line % 3 == 2 ? "y x" : "z";
      EXPECT_TRUE(line.text.starts_with(prefix)) << line.text;
      EXPECT_EQ(line.alignment, align_words(t, line.source_text, line.source, line.decoded.ids));
      begun += !prefix.empty();
    }
    EXPECT_GT(begun, 60);
    options.ready = {};
    for (const int64_t batch : {2, 7, 64}) {
      options.batch = batch;
      const auto together = with_prefixes();
      expect_alike(together, alone);
      for (size_t i = 0; i < alone.size(); ++i)
        EXPECT_EQ(together[i].alignment, alone[i].alignment);
    }
  }
}

TEST(TranslateLines, PrefixesAreOneALine) {
  const Translator t = make_translator(3);
  const auto error_with = [&](const std::string& text, const std::string& prefix_text,
                              std::vector<Translation>& lines) {
    std::istringstream input(text), prefix_input(prefix_text);
    text::LineReader reader(input, "in"), prefixes(prefix_input, "prefixes");
    return error_of([&] {
      translate_lines(t, reader, {.prefixes = &prefixes},
                      [&](const Translation& line) { lines.push_back(line); });
    });
  };
  std::vector<Translation> lines;
  EXPECT_EQ(error_with("a\nb\nc\n", "x\ny\n", lines),
            "prefixes: expected a prefix for each line of in, got 2");
  EXPECT_EQ(lines.size(), 2u);  // what had one is not lost
  lines.clear();
  EXPECT_EQ(error_with("a\nb\n", "x\ny\n\n", lines),
            "prefixes: expected a prefix for each line of in, 2, got more");
  EXPECT_EQ(lines.size(), 2u);
  lines.clear();
  // A bad prefix refuses its line, and a bad line takes its prefix with it.
  const std::string longer = "x x x x x x x x x x x x x";
  std::istringstream input("a\nb\n\xFF\nc\n"), prefix_input("x\n" + longer + "\ny\nz\n");
  text::LineReader reader(input, "in"), prefixes(prefix_input, "prefixes");
  translate_lines(t, reader, {.prefixes = &prefixes},
                  [&](const Translation& line) { lines.push_back(line); });
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_TRUE(lines[0].text.starts_with("x"));
  EXPECT_NE(lines[1].refused.find("prefixes:2: the line has 13 words"), std::string::npos);
  EXPECT_NE(lines[2].refused.find("in:3: invalid UTF-8"), std::string::npos);
  EXPECT_EQ(lines[1].text + lines[2].text, "");
  EXPECT_TRUE(lines[3].text.starts_with("z"));
}

TEST(TranslateLines, ABeamThatSamplesIsAnError) {
  const Translator t = make_translator(1);
  EXPECT_EQ(
      error_of([&] { translations(t, "a\n", {.beam = BeamOptions(), .sample = SampleOptions()}); }),
      "translate: expected a beam or sampling, got both");
}

TEST(TranslateLines, ABatchThatCannotBeIsAnError) {
  const Translator t = make_translator(1);
  for (const int64_t batch : {int64_t{0}, int64_t{-1}, kMostLinesOfBatch + 1}) {
    EXPECT_NE(error_of([&] {
                translations(t, "a\n", {.batch = batch});
              }).find("expected a batch of 1 to 1048576 lines, got"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace rapt::decode
