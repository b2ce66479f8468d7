#include "rapt/decode/greedy.h"

#include "rapt/base/runtime.h"
#include "tests/testing/translators.h"

namespace rapt::decode {
namespace {

using namespace testing;
using Sentences = std::vector<std::vector<int32_t>>;

// Without a cache: the whole target is computed anew for each token.
std::vector<int32_t> plain(const models::EncoderDecoder& model, const std::vector<int32_t>& source,
                           int64_t limit) {
  std::vector<int32_t> target = {model.config().start_id};
  const int64_t length = static_cast<int64_t>(source.size());
  while (static_cast<int64_t>(target.size()) <= limit) {
    const int64_t t = static_cast<int64_t>(target.size());
    const Tensor logits =
        model.forward(ids(source), Rows::packed({length}), ids(target), Rows::packed({t}), Pass());
    const std::vector<double> last = values_of(logits.rows(t - 1, 1));
    const int32_t best =
        static_cast<int32_t>(std::max_element(last.begin(), last.end()) - last.begin());
    if (best == model.config().end_id) break;
    target.push_back(best);
  }
  return {target.begin() + 1, target.end()};
}

const Sentences kSentences = {{3, 4, 5}, {}, {6}, {7, 8, 3, 4, 4, 5}, {5, 5}};

TEST(Greedy, IsThePlainLoopWithoutACache) {
  for (const uint64_t seed : {1, 2, 3, 4}) {
    const models::EncoderDecoder model = make_model(small_config("rapt"), DType::f32, seed);
    const auto results = greedy(model, kSentences);
    for (size_t b = 0; b < kSentences.size(); ++b) {
      if (kSentences[b].empty()) continue;
      EXPECT_EQ(results[b].ids, plain(model, kSentences[b], 12)) << seed << " " << b;
    }
  }
}

TEST(Greedy, MatesThreadsAndOrderChangeNothing) {
  const models::EncoderDecoder model = make_model(small_config("torch"), DType::f32, 2);
  const auto together = greedy(model, kSentences);
  for (const int threads : {1, 3}) {
    Runtime runtime({.threads = threads, .log = {}});
    const Runtime::Scope scope(runtime);
    for (size_t b = 0; b < kSentences.size(); ++b) {
      const auto alone = greedy(model, std::span(kSentences).subspan(b, 1));
      EXPECT_EQ(alone[0].ids, together[b].ids);
      EXPECT_EQ(alone[0].score, together[b].score);
      EXPECT_EQ(alone[0].margin, together[b].margin);
    }
    const auto reversed = greedy(model, Sentences(kSentences.rbegin(), kSentences.rend()));
    for (size_t b = 0; b < kSentences.size(); ++b)
      EXPECT_EQ(reversed[kSentences.size() - 1 - b].ids, together[b].ids);
  }
}

TEST(Greedy, StopsAtTheLimitAndNeverLater) {
  const models::EncoderDecoder model = make_model(small_config("rapt"), DType::f32, 1);
  for (const int64_t limit : {1, 3, 12, 100}) {
    for (const Decoded& result : greedy(model, kSentences, {.max_length = limit})) {
      EXPECT_LE(static_cast<int64_t>(result.ids.size()), std::min<int64_t>(limit, 12));
      if (!result.ended) {
        EXPECT_EQ(static_cast<int64_t>(result.ids.size()), std::min<int64_t>(limit, 12));
      }
    }
  }
}

TEST(Greedy, R31_TheRatioBoundsASentenceByItsOwnSource) {
  const models::EncoderDecoder model = make_model(small_config("rapt"), DType::f32, 1);
  const auto free = greedy(model, kSentences);
  int cut = 0;
  for (const double ratio : {0.1, 0.5, 1.0, 1.5, 1000.0}) {
    for (const int64_t extra : {0, 1, 3}) {
      const auto bound =
          greedy(model, kSentences, {.max_length_ratio = ratio, .max_length_extra = extra});
      for (size_t b = 0; b < kSentences.size(); ++b) {
        const auto most = static_cast<size_t>(std::max<int64_t>(
            1, extra + static_cast<int64_t>(ratio * static_cast<double>(kSentences[b].size()))));
        std::vector<int32_t> expected = free[b].ids;
        if (expected.size() >= most) ++cut;
        expected.resize(std::min(expected.size(), most));
        EXPECT_EQ(bound[b].ids, expected) << ratio << " " << extra << " " << b;
        EXPECT_EQ(bound[b].ended, free[b].ended && free[b].ids.size() < most);
      }
    }
  }
  EXPECT_GT(cut, 5);
}

TEST(Greedy, LimitsThatCannotBeAreErrors) {
  const models::EncoderDecoder model = make_model(small_config("rapt"), DType::f32);
  const auto error = [&](const GreedyOptions& options) {
    return error_of([&] { greedy(model, kSentences, options); });
  };
  EXPECT_EQ(error({.max_length = -1}), "greedy: expected max_length of at least 0, got -1");
  for (const double ratio : {-0.5, 1001.0, std::nan("")}) {
    EXPECT_NE(error({.max_length_ratio = ratio})
                  .find("greedy: expected max_length_ratio of 0 to 1000, got"),
              std::string::npos);
  }
  EXPECT_NE(error({.max_length_ratio = 1, .max_length_extra = -2})
                .find("expected max_length_extra of 0 to"),
            std::string::npos);
}

TEST(Greedy, EmptySentencesGiveEmptyOnesAndNoSentencesNone) {
  const models::EncoderDecoder model = make_model(small_config("rapt"), DType::f32);
  EXPECT_TRUE(greedy(model, Sentences{}).empty());
  const auto results = greedy(model, Sentences{{}, {}});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_TRUE(results[1].ids.empty());
  EXPECT_TRUE(results[1].ended);
}

TEST(Greedy, TheScoreIsThatOfTheWholeComputation) {
  const models::EncoderDecoder model = make_model(small_config("rapt"), DType::f64, 3);
  const Decoded result = greedy(model, Sentences{{3, 4}}).front();
  std::vector<int32_t> target = {model.config().start_id};
  target.insert(target.end(), result.ids.begin(), result.ids.end());
  if (!result.ended) target.pop_back();
  const int64_t t = static_cast<int64_t>(target.size()), V = 7;
  const std::vector<double> logits = values_of(
      model.forward(ids({3, 4}), Rows::packed({2}), ids(target), Rows::packed({t}), Pass()));
  double score = 0;
  for (int64_t i = 0; i < t; ++i) {
    const double* row = &logits[static_cast<size_t>(i * V)];
    double sum = 0;
    for (int64_t v = 0; v < V; ++v) sum += std::exp(row[v]);
    const int32_t id = i < static_cast<int64_t>(result.ids.size())
                           ? result.ids[static_cast<size_t>(i)]
                           : model.config().end_id;
    score += row[id] - std::log(sum);
  }
  EXPECT_NEAR(result.score, score, 1e-10);
  EXPECT_GE(result.margin, 0);
}

TEST(Greedy, ATooLongSentenceAndBadWeightsAreErrors) {
  const models::EncoderDecoder model = make_model(small_config("rapt"), DType::f32);
  const std::string error = error_of([&] {
    greedy(model, Sentences{{3}, std::vector<int32_t>(13, 3)});
  });
  EXPECT_NE(error.find("sentence 1 has 13 tokens, the model has 12 positions"), std::string::npos)
      << error;
  for (const NamedParameter& p : nn::parameters(model)) {
    Tensor value = p.value();
    if (p.name == "projection.bias") value.data<float>()[0] = NAN;
  }
  EXPECT_NE(error_of([&] { greedy(model, Sentences{{3}}); }).find("step 0"), std::string::npos);
}

}  // namespace
}  // namespace rapt::decode
