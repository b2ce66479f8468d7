#include "rapt/decode/draw.h"

#include <map>

#include "tests/testing/tensors.h"

namespace rapt::decode {
namespace {

using namespace testing;

constexpr int kDraws = 20000;

// How often each token comes where the random numbers lie evenly in [0, 1).
std::map<int32_t, double> shares(const std::vector<double>& logits, const SampleOptions& options,
                                 const std::vector<int32_t>& used = {}) {
  std::map<int32_t, double> share;
  for (int i = 0; i < kDraws; ++i)
    share[draw_token(logits, used, options, (i + 0.5) / kDraws, 0)] += 1.0 / kDraws;
  return share;
}

void expect_softmax(const std::map<int32_t, double>& share, const std::vector<double>& logits) {
  double sum = 0;
  for (const double x : logits) sum += std::exp(x);
  for (size_t v = 0; v < logits.size(); ++v) {
    const auto found = share.find(static_cast<int32_t>(v));
    EXPECT_NEAR(found == share.end() ? 0 : found->second, std::exp(logits[v]) / sum, 2.0 / kDraws)
        << v;
  }
}

constexpr double kNever = -std::numeric_limits<double>::infinity();

TEST(DrawToken, DrawsEachTokenByItsProbability) {
  expect_softmax(shares({1, -2, 0.5, 0, 3}, {}), {1, -2, 0.5, 0, 3});
  expect_softmax(shares({1, kNever, 700, 699}, {}), {-699, kNever, 0, -1});
}

TEST(DrawToken, TheTemperatureDividesTheLogits) {
  expect_softmax(shares({1, -2, 0.5}, {.temperature = 0.5}), {2, -4, 1});
  expect_softmax(shares({1, -2, 0.5}, {.temperature = 4}), {0.25, -0.5, 0.125});
}

TEST(DrawToken, R29_RepetitionMakesTokensLessLikelyWhateverTheirSign) {
  const std::vector<double> logits = {-2, -1, 1, 2};
  expect_softmax(shares(logits, {.repetition_penalty = 1.5}, {0, 3}), {-3, -1, 1, 2 / 1.5});
  expect_softmax(shares(logits, {.repetition_penalty = 1.5}, {0, 3, 3, 0, 3}),
                 {-3, -1, 1, 2 / 1.5});  // once each
  expect_softmax(shares(logits, {.repetition_penalty = 0.5}, {0}), {-1, -1, 1, 2});
  expect_softmax(shares(logits, {.repetition_penalty = 1}, {0, 3}), logits);
}

TEST(DrawToken, TopKLeavesTheBestAndOfEqualsTheFirst) {
  expect_softmax(shares({0, 2, 1, 2, -1}, {.top_k = 3}), {kNever, 2, 1, 2, kNever});
  expect_softmax(shares({0, 2, 2, 2, -1}, {.top_k = 2}), {kNever, 2, 2, kNever, kNever});
  for (const int64_t all : {0, 3, 4, 1000})
    expect_softmax(shares({0, 2, 1}, {.top_k = all}), {0, 2, 1});
}

TEST(DrawToken, TopPLeavesTheFewestBestThatHaveTheShare) {
  const std::vector<double> logits = {std::log(0.1), std::log(0.5), std::log(0.15), std::log(0.25)};
  expect_softmax(shares(logits, {.top_p = 0.4}), {kNever, 0, kNever, kNever});
  expect_softmax(shares(logits, {.top_p = 0.7}), {kNever, logits[1], kNever, logits[3]});
  expect_softmax(shares(logits, {.top_p = 0.89}), {kNever, logits[1], logits[2], logits[3]});
  expect_softmax(shares(logits, {.top_p = 0.95}), logits);
  expect_softmax(shares(logits, {.top_p = 1}), logits);
  // The share is counted in what top-k and the temperature have left.
  expect_softmax(shares(logits, {.top_k = 2, .top_p = 0.6}), {kNever, 0, kNever, kNever});
  expect_softmax(shares(logits, {.temperature = 0.1, .top_p = 0.9}), {kNever, 0, kNever, kNever});
}

TEST(DrawToken, R32_TheBestTokenAlwaysSurvives) {
  const std::vector<double> logits = {0.5, 3, kNever, 2.9};
  for (const SampleOptions& options :
       {SampleOptions{.top_p = 0}, SampleOptions{.top_p = 1e-8}, SampleOptions{.top_k = 1},
        SampleOptions{.temperature = 0}, SampleOptions{.temperature = 1e-30},
        SampleOptions{.temperature = 1e-308}, SampleOptions{.top_k = 1, .top_p = 1e-8}})
    expect_softmax(shares(logits, options), {kNever, 0, kNever, kNever});
  expect_softmax(shares(logits, {.temperature = 1e30}), {0, 0, kNever, 0});
  expect_softmax(shares({kNever, -5, kNever}, {.temperature = 2}), {kNever, 0, kNever});
  for (const double uniform : {0.0, std::nextafter(1.0, 0.0)})
    EXPECT_NE(draw_token(logits, {}, {}, uniform, 0), 2);
}

TEST(DrawToken, R32_LogitsThatAreNotFiniteAreErrorsThatNameTheStep) {
  for (const std::vector<double>& bad : {std::vector<double>{1, NAN, 2}, {1, INFINITY}, {kNever}}) {
    const std::string error = error_of([&] { draw_token(bad, {}, {}, 0.5, 17); });
    EXPECT_NE(error.find("step 17"), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace rapt::decode
