#include "rapt/decode/sample.h"

#include <map>

#include "rapt/base/runtime.h"
#include "tests/testing/translators.h"

namespace rapt::decode {
namespace {

using namespace testing;
using Sentences = std::vector<std::vector<int32_t>>;

const Sentences kSentences = {{3, 4, 5}, {}, {6}, {7, 8, 3, 4, 4, 5}, {5, 5}};

void expect_equal(const Decoded& a, const Decoded& b) {
  EXPECT_EQ(a.ids, b.ids);
  EXPECT_EQ(a.score, b.score);  // bits
  EXPECT_EQ(a.ended, b.ended);
}

TEST(Sample, WhereOnlyTheBestTokenIsLeftIsGreedyBitForBit) {
  const models::EncoderDecoder model = make_model(small_config("rapt"), DType::f32, 3);
  const auto expected = greedy(model, kSentences);
  for (const SampleOptions& options :
       {SampleOptions{.temperature = 0}, SampleOptions{.top_k = 1}, SampleOptions{.top_p = 0}}) {
    const auto results = sample(model, kSentences, options);
    for (size_t b = 0; b < kSentences.size(); ++b) expect_equal(results[b], expected[b]);
  }
}

TEST(Sample, R31_MatesOrderAndThreadsChangeNothing) {
  const models::EncoderDecoder model = make_model(small_config("torch"), DType::f32, 2);
  const std::vector<uint64_t> samples = {11, 5, 7, 1000000, 12};
  const auto together = sample(model, kSentences, {.seed = 4, .samples = samples});
  for (const int threads : {1, 3}) {
    Runtime runtime({.threads = threads, .log = {}});
    const Runtime::Scope scope(runtime);
    for (size_t b = 0; b < kSentences.size(); ++b) {
      const auto alone = sample(model, std::span(kSentences).subspan(b, 1),
                                {.seed = 4, .samples = std::span(samples).subspan(b, 1)});
      expect_equal(alone[0], together[b]);
    }
    const std::vector<uint64_t> reversed_samples(samples.rbegin(), samples.rend());
    const auto reversed = sample(model, Sentences(kSentences.rbegin(), kSentences.rend()),
                                 {.seed = 4, .samples = reversed_samples});
    for (size_t b = 0; b < kSentences.size(); ++b)
      expect_equal(reversed[kSentences.size() - 1 - b], together[b]);
  }
}

TEST(Sample, AnotherSeedOrAnotherKeyDrawsAnother) {
  const models::EncoderDecoder model = make_model(small_config("rapt"), DType::f32, 2);
  const Sentences alike(20, {3, 4, 5});
  const auto drawn = sample(model, alike, {.seed = 1}), other = sample(model, alike, {.seed = 2});
  std::map<std::vector<int32_t>, int> kinds;
  int same = 0;
  for (size_t b = 0; b < alike.size(); ++b) {
    ++kinds[drawn[b].ids];
    same += drawn[b].ids == other[b].ids;
  }
  EXPECT_GT(kinds.size(), 10u);
  EXPECT_LT(same, 10);
}

TEST(Sample, FirstTokensComeAsOftenAsTheModelSays) {
  const models::EncoderDecoder model = make_model(small_config("rapt"), DType::f64, 2);
  const int draws = 4000;
  const auto results = sample(model, Sentences(draws, {3, 4}), {.seed = 9, .max_length = 1});
  std::vector<double> share(7, 0);
  for (const Decoded& result : results)
    share[static_cast<size_t>(result.ended ? 2 : result.ids.at(0))] += 1.0 / draws;
  const std::vector<double> logits =
      values_of(model.forward(ids({3, 4}), Rows::packed({2}), ids({1}), Rows::packed({1}), Pass()));
  double sum = 0;
  for (const double x : logits) sum += std::exp(x);
  for (size_t v = 0; v < logits.size(); ++v) {
    const double p = std::exp(logits[v]) / sum;
    EXPECT_NEAR(share[v], p, 4 * std::sqrt(p * (1 - p) / draws)) << v;
  }
}

TEST(Sample, TheScoreIsTheModelsWhateverWasDoneToTheLogits) {
  const models::EncoderDecoder model = make_model(small_config("rapt"), DType::f32, 2);
  const auto drawn =
      sample(model, kSentences, {.repetition_penalty = 2, .temperature = 3, .max_length = 6});
  Sentences prefixes;
  // Greedy decoding that must begin with all of it gives the same sum.
  for (const Decoded& one : drawn) prefixes.push_back(one.ids);
  const auto forced = greedy(model, kSentences, {.max_length = 1, .prefixes = prefixes});
  int compared = 0;
  for (size_t b = 0; b < kSentences.size(); ++b) {
    if (drawn[b].ended || drawn[b].ids.empty()) continue;
    EXPECT_EQ(forced[b].ids, drawn[b].ids);
    EXPECT_EQ(forced[b].score, drawn[b].score);
    ++compared;
  }
  EXPECT_GT(compared, 1);
}

TEST(Sample, BeginsWithItsPrefix) {
  const models::EncoderDecoder model = make_model(small_config("rapt"), DType::f32, 2);
  const Sentences prefixes = {{3, 5, 3}, {}, {}, {6}, {4, 4}};
  const auto results = sample(model, kSentences, {.prefixes = prefixes});
  for (size_t b = 0; b < kSentences.size(); ++b) {
    ASSERT_GE(results[b].ids.size(), prefixes[b].size());
    EXPECT_TRUE(std::equal(prefixes[b].begin(), prefixes[b].end(), results[b].ids.begin()));
  }
}

TEST(Sample, R29_R32_OptionsThatCannotBeAreErrors) {
  const models::EncoderDecoder model = make_model(small_config("rapt"), DType::f32);
  const auto expect_error = [&](const SampleOptions& options, const std::string& part) {
    const std::string message = error_of([&] { sample(model, kSentences, options); });
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  for (const double bad : {0.0, -1.0, double{NAN}, double{INFINITY}})
    expect_error({.repetition_penalty = bad}, "expected a repetition_penalty above 0, got");
  for (const double bad : {-1.0, double{NAN}, double{INFINITY}})
    expect_error({.temperature = bad}, "expected a temperature of at least 0, got");
  for (const double bad : {-1.0, 1.5, double{NAN}})
    expect_error({.top_p = bad}, "expected top_p of 0 to 1, got");
  expect_error({.top_k = -1}, "expected top_k of at least 0, got -1");
  const std::vector<uint64_t> two = {1, 2};
  expect_error({.samples = two}, "one for each of 5 sentences, got 2");
  expect_error({.max_length = -1}, "sampling: expected max_length");
  for (const NamedParameter& p : nn::parameters(model)) {
    Tensor value = p.value();
    if (p.name == "projection.bias") value.data<float>()[0] = NAN;
  }
  expect_error({}, "step 0");
}

}  // namespace
}  // namespace rapt::decode
