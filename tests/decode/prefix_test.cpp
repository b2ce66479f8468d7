#include <algorithm>
#include <set>

#include "rapt/base/runtime.h"
#include "rapt/decode/beam.h"
#include "rapt/decode/greedy.h"
#include "tests/testing/translators.h"

namespace rapt::decode {
namespace {

using namespace testing;
using Ids = std::vector<int32_t>;
using Sentences = std::vector<Ids>;

const Sentences kSentences = {{3, 4, 5}, {}, {6}, {7, 8, 3, 4, 4, 5}, {5, 5}};
const Sentences kPrefixes = {{3, 5, 3}, {}, {}, {6}, {4, 4, 4, 4, 4}};

bool begins_with(const Ids& ids, const Ids& prefix) {
  return ids.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), ids.begin());
}

TEST(Prefix, OfTheFreeTranslationChangesNothing) {
  const models::EncoderDecoder model = make_model(small_config("rapt"), DType::f32, 2);
  const auto free = greedy(model, kSentences);
  for (size_t length = 0; length <= 12; ++length) {
    Sentences prefixes;
    for (const Decoded& one : free) {
      prefixes.push_back(one.ids);
      prefixes.back().resize(std::min(one.ids.size(), length));
    }
    const auto forced = greedy(model, kSentences, {.prefixes = prefixes});
    for (size_t b = 0; b < kSentences.size(); ++b) {
      EXPECT_EQ(forced[b].ids, free[b].ids);
      EXPECT_EQ(forced[b].score, free[b].score);  // bits
      EXPECT_EQ(forced[b].ended, free[b].ended);
    }
  }
}

TEST(Prefix, StandsWholeAtTheBeginningWhateverTheLimit) {
  const models::EncoderDecoder model = make_model(small_config("torch"), DType::f32, 2);
  for (const int64_t limit : {0, 1, 4}) {
    const auto best = greedy(model, kSentences, {.max_length = limit, .prefixes = kPrefixes});
    const auto beams = beam_search(
        model, kSentences, {.beam = 3, .n_best = 3, .max_length = limit, .prefixes = kPrefixes});
    for (size_t b = 0; b < kSentences.size(); ++b) {
      EXPECT_TRUE(begins_with(best[b].ids, kPrefixes[b])) << b;
      const auto most =
          std::max<size_t>(limit == 0 ? 12 : static_cast<size_t>(limit), kPrefixes[b].size());
      EXPECT_LE(best[b].ids.size(), most);
      std::set<std::pair<Ids, bool>> seen;
      for (const Hypothesis& h : beams[b]) {
        EXPECT_TRUE(begins_with(h.ids, kPrefixes[b])) << b;
        EXPECT_LE(h.ids.size(), most);
        EXPECT_TRUE(seen.insert({h.ids, h.ended}).second);
      }
    }
  }
}

TEST(Prefix, ABeamOfOneIsGreedyAndMatesChangeNothing) {
  const models::EncoderDecoder model = make_model(small_config("rapt"), DType::f32, 4);
  const auto best = greedy(model, kSentences, {.prefixes = kPrefixes});
  const auto of_one = beam_search(model, kSentences, {.beam = 1, .prefixes = kPrefixes});
  const auto together =
      beam_search(model, kSentences, {.beam = 4, .n_best = 2, .prefixes = kPrefixes});
  for (size_t b = 0; b < kSentences.size(); ++b) {
    EXPECT_EQ(of_one[b].front().ids, best[b].ids);
    EXPECT_EQ(of_one[b].front().log_probability, best[b].score);
    const auto sentence = std::span(kSentences).subspan(b, 1);
    const auto prefix = std::span(kPrefixes).subspan(b, 1);
    EXPECT_EQ(greedy(model, sentence, {.prefixes = prefix})[0].score, best[b].score);
    const auto alone = beam_search(model, sentence, {.beam = 4, .n_best = 2, .prefixes = prefix});
    ASSERT_EQ(alone[0].size(), together[b].size());
    for (size_t i = 0; i < alone[0].size(); ++i) {
      EXPECT_EQ(alone[0][i].ids, together[b][i].ids);
      EXPECT_EQ(alone[0][i].score, together[b][i].score);
    }
  }
}

// The search behind a prefix is the one that a wide enough beam finds without, of what begins so.
TEST(Prefix, ABeamFindsTheBestOfThoseThatBeginSo) {
  models::EncoderDecoderConfig config = small_config("rapt");
  config.tgt_vocab_size = 5;
  const models::EncoderDecoder model = make_model(config, DType::f32, 1);
  const Sentences sentence = {{3, 4}};
  const auto all =
      beam_search(model, sentence, {.beam = 400, .n_best = 400, .max_length = 4}).front();
  ASSERT_EQ(all.size(), 341u);
  for (const Ids& prefix : {Ids{3}, Ids{4, 4}, Ids{0, 1, 3}, Ids{3, 3, 3, 3}}) {
    std::vector<Hypothesis> expected;
    std::copy_if(all.begin(), all.end(), std::back_inserter(expected),
                 [&](const Hypothesis& h) { return begins_with(h.ids, prefix); });
    const Sentences prefixes = {prefix};
    const auto found =
        beam_search(model, sentence,
                    {.beam = 400, .n_best = 400, .max_length = 4, .prefixes = prefixes})
            .front();
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].ids, expected[i].ids);
      EXPECT_EQ(found[i].score, expected[i].score);
    }
  }
}

TEST(Prefix, ThatCannotBeIsAnError) {
  const models::EncoderDecoder model = make_model(small_config("rapt"), DType::f32);
  const auto expect_error = [&](const Sentences& prefixes, const std::string& part) {
    for (const std::string& message :
         {error_of([&] { greedy(model, kSentences, {.prefixes = prefixes}); }),
          error_of([&] { beam_search(model, kSentences, {.prefixes = prefixes}); })})
      EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  expect_error({{3}}, "expected no prefixes or one for each of 5 sentences, got 1");
  expect_error({{3}, {}, {}, {2}, {}}, "prefix of sentence 3: expected tokens of 0 to 6 and not");
  expect_error({{7}, {}, {}, {}, {}}, "prefix of sentence 0: expected tokens of 0 to 6");
  expect_error({{-1}, {}, {}, {}, {}}, "got -1");
  expect_error({{}, {}, Ids(13, 3), {}, {}},
               "the prefix of sentence 2 has 13 tokens, the model has 12 positions");
}

}  // namespace
}  // namespace rapt::decode
