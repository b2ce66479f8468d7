#include <cmath>
#include <limits>

#include "rapt/eval/bleu.h"
#include "rapt/eval/bootstrap.h"
#include "rapt/eval/chrf.h"
#include "tests/testing/testing.h"

namespace rapt::eval {
namespace {

using Lines = std::vector<std::string>;

// The error's kind and text.
template <class Body>
std::pair<ErrorKind, std::string> complaint(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return {error.kind(), error.what()};
  }
  ADD_FAILURE() << "expected a rapt::Error";
  return {};
}

TEST(Metric, LengthsThatDifferAreNamed) {
  const std::vector<Lines> references = {{"a", "b"}, {"a"}};
  const auto [kind, text] = complaint([&] { count_segments(Bleu(), Lines{"a", "b"}, references); });
  EXPECT_EQ(kind, ErrorKind::data);
  EXPECT_NE(text.find("reference 2"), std::string::npos);
  EXPECT_NE(text.find("1 and 2"), std::string::npos);
}

TEST(Metric, NothingToEvaluateIsAnError) {
  const std::vector<Lines> empty = {{}};
  EXPECT_EQ(complaint([&] { count_segments(Chrf(), Lines{}, empty); }).first, ErrorKind::data);
  EXPECT_EQ(complaint([&] { count_segments(Chrf(), Lines{"a"}, {}); }).first, ErrorKind::data);
}

TEST(Metric, TextThatIsNotUtf8IsAnError) {
  const std::vector<Lines> references = {{"a"}};
  for (const std::string bad : {"\xff", "\xe2\x82", "\xed\xa0\x80"}) {
    const auto [kind, text] = complaint([&] { count_segments(Bleu(), Lines{bad}, references); });
    EXPECT_EQ(kind, ErrorKind::data) << text;
  }
}

TEST(Metric, OptionsThatCannotBeAreRefused) {
  EXPECT_EQ(complaint([] { Chrf({.char_order = 0, .word_order = 0}); }).first, ErrorKind::usage);
  EXPECT_EQ(complaint([] { Chrf({.char_order = 101}); }).first, ErrorKind::usage);
  EXPECT_EQ(complaint([] { Chrf({.beta = 0}); }).first, ErrorKind::usage);
  for (const double value : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(
        complaint([&] { Bleu({.smoothing = Smoothing::floor, .smoothing_value = value}); }).first,
        ErrorKind::usage);
  }
  EXPECT_EQ(complaint([] { parse_tokenizer("14a"); }).first, ErrorKind::usage);
}

// Two systems over 40 lines; the second one gets every `step`-th line wrong.
struct Systems {
  Lines reference, good, worse;
  explicit Systems(int step) {
    for (int i = 0; i < 40; ++i) {
      const std::string n = std::to_string(i);
      reference.push_back("line " + n + " of these has word" + n + " in it");
      good.push_back("line " + n + " of those has word" + n + " in it");
      worse.push_back(i % step == 0 ? "nothing at all like that" : good.back());
    }
  }
};

PairedBootstrap compare(const Lines& baseline, const Lines& system, const Lines& reference,
                        const BootstrapOptions& options = {}) {
  const Bleu bleu;
  const std::vector<Lines> references = {reference};
  return paired_bootstrap(bleu, count_segments(bleu, baseline, references),
                          count_segments(bleu, system, references), options);
}

TEST(PairedBootstrap, ALargeDifferenceIsSignificantAndNoneIsNot) {
  const Systems systems(2);
  const PairedBootstrap large = compare(systems.worse, systems.good, systems.reference);
  EXPECT_LT(large.p_value, 0.01);
  EXPECT_GT(large.system.mean, large.baseline.mean);
  EXPECT_GT(large.baseline.half_width, 0);
  const PairedBootstrap same = compare(systems.good, systems.good, systems.reference);
  EXPECT_EQ(same.p_value, 1);
  EXPECT_EQ(same.system.mean, same.baseline.mean);
}

TEST(PairedBootstrap, OneLineMoreOrLessIsChance) {
  const Systems systems(40);
  EXPECT_GT(compare(systems.worse, systems.good, systems.reference).p_value, 0.05);
}

TEST(PairedBootstrap, TheSeedDecides) {
  const Systems systems(5);
  const auto run = [&](uint64_t seed) {
    return compare(systems.worse, systems.good, systems.reference, {.samples = 50, .seed = seed});
  };
  EXPECT_EQ(run(1).baseline.mean, run(1).baseline.mean);
  EXPECT_NE(run(1).baseline.mean, run(2).baseline.mean);
}

TEST(PairedBootstrap, SamplesAreWithinBounds) {
  const Systems systems(5);
  for (const int64_t samples : {int64_t{0}, int64_t{-1}, int64_t{10'000'001}}) {
    EXPECT_EQ(complaint([&] {
                compare(systems.worse, systems.good, systems.reference, {.samples = samples});
              }).first,
              ErrorKind::usage);
  }
}

}  // namespace
}  // namespace rapt::eval
