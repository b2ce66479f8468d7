#include "rapt/decode/beam.h"

#include <algorithm>
#include <set>

#include "rapt/base/profile.h"
#include "rapt/base/runtime.h"
#include "rapt/decode/alignment.h"
#include "rapt/decode/greedy.h"
#include "tests/testing/translators.h"

namespace rapt::decode {
namespace {

using namespace testing;
using Ids = std::vector<int32_t>;
using Sentences = std::vector<Ids>;
using Results = std::vector<Hypothesis>;

const Sentences kSentences = {{3, 4, 5}, {}, {6}, {7, 8, 3, 4, 4, 5}, {5, 5}};
const double kPenalties[] = {-1, 0, 0.6, 1, 2};

// A target vocabulary of 5.
models::EncoderDecoder toy_model(uint64_t seed) {
  models::EncoderDecoderConfig config = small_config("rapt");
  config.tgt_vocab_size = 5;
  return make_model(config, DType::f64, seed);
}

// The log-probabilities (T, V) of what may come after each token of start + target, computed as a
// whole.
std::vector<std::vector<double>> all_log_probabilities(const models::EncoderDecoder& model,
                                                       const Ids& source, const Ids& target) {
  Ids read = {model.config().start_id};
  read.insert(read.end(), target.begin(), target.end());
  const auto length = [](const Ids& x) { return static_cast<int64_t>(x.size()); };
  const Tensor logits = model.forward(ids(source), Rows::packed({length(source)}), ids(read),
                                      Rows::packed({length(read)}), Pass());
  std::vector<std::vector<double>> rows;
  for (int64_t t = 0; t < logits.dim(0); ++t) {
    std::vector<double> row = values_of(logits.rows(t, 1));
    double sum = 0;
    for (const double x : row) sum += std::exp(x);
    for (double& x : row) x -= std::log(sum);
    rows.push_back(row);
  }
  return rows;
}

// What the model gives a target, the end included where it has ended.
double forced_score(const models::EncoderDecoder& model, const Ids& source, const Ids& target,
                    bool ended) {
  const auto rows = all_log_probabilities(model, source, target);
  double score = 0;
  for (size_t t = 0; t < target.size(); ++t) score += rows[t][static_cast<size_t>(target[t])];
  return score + (ended ? rows.back()[static_cast<size_t>(model.config().end_id)] : 0);
}

double normalised(double score, const Ids& target, bool ended, double penalty) {
  return score / std::pow(static_cast<double>(target.size()) + (ended ? 1 : 0), penalty);
}

// Every target of at most `limit` tokens.
void enumerate(const models::EncoderDecoder& model, const Ids& source, size_t limit,
               const Ids& head, Results& all) {
  if (head.size() == limit) {
    all.push_back({head, forced_score(model, source, head, false), 0, false});
    return;
  }
  all.push_back({head, forced_score(model, source, head, true), 0, true});
  for (int32_t v = 0; v < static_cast<int32_t>(model.config().tgt_vocab_size); ++v) {
    if (v == model.config().end_id) continue;
    Ids longer = head;
    longer.push_back(v);
    enumerate(model, source, limit, longer, all);
  }
}

void sort_by_score(Results& results, double penalty) {
  for (Hypothesis& h : results) h.score = normalised(h.log_probability, h.ids, h.ended, penalty);
  std::stable_sort(results.begin(), results.end(),
                   [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
}

// Beam search as it is told in a sentence: without a cache, each hypothesis alone, to the end.
Results plain(const models::EncoderDecoder& model, const Ids& source, const BeamOptions& options) {
  Results open = {{}}, ended;
  while (!open.empty()) {
    Results all;
    for (const Hypothesis& h : open) {
      const auto row = all_log_probabilities(model, source, h.ids).back();
      for (size_t v = 0; v < row.size(); ++v) {
        Hypothesis longer = h;
        longer.log_probability += row[v];
        longer.ended = static_cast<int32_t>(v) == model.config().end_id;
        if (!longer.ended) longer.ids.push_back(static_cast<int32_t>(v));
        all.push_back(longer);
      }
    }
    std::stable_sort(all.begin(), all.end(), [](const Hypothesis& a, const Hypothesis& b) {
      return a.log_probability > b.log_probability;
    });
    all.resize(std::min(all.size(), static_cast<size_t>(options.beam) - ended.size()));
    open.clear();
    for (const Hypothesis& h : all) {
      const bool over = h.ended || static_cast<int64_t>(h.ids.size()) == options.max_length;
      (over ? ended : open).push_back(h);
    }
  }
  sort_by_score(ended, options.length_penalty);
  ended.resize(std::min(ended.size(), static_cast<size_t>(options.n_best)));
  return ended;
}

void expect_equal(const Results& a, const Results& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].ids, b[i].ids) << i;
    EXPECT_EQ(a[i].log_probability, b[i].log_probability) << i;
    EXPECT_EQ(a[i].score, b[i].score) << i;
    EXPECT_EQ(a[i].ended, b[i].ended) << i;
  }
}

void expect_near(const Results& a, const Results& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].ids, b[i].ids) << i;
    EXPECT_NEAR(a[i].log_probability, b[i].log_probability, 1e-10) << i;
    EXPECT_NEAR(a[i].score, b[i].score, 1e-10) << i;
    EXPECT_EQ(a[i].ended, b[i].ended) << i;
  }
}

TEST(Beam, OfOneIsGreedyBitForBit) {
  for (const char* layout : {"rapt", "torch", "hand_built"}) {
    for (const uint64_t seed : {1, 2, 3, 4}) {
      const models::EncoderDecoder model = make_model(small_config(layout), DType::f32, seed);
      for (const int64_t limit : {0, 3}) {
        const auto expected = greedy(model, kSentences, {.max_length = limit});
        const auto results = beam_search(model, kSentences, {.beam = 1, .max_length = limit});
        ASSERT_EQ(results.size(), expected.size());
        for (size_t b = 0; b < results.size(); ++b) {
          ASSERT_EQ(results[b].size(), 1u);
          EXPECT_EQ(results[b][0].ids, expected[b].ids) << layout << seed << b;
          EXPECT_EQ(results[b][0].log_probability, expected[b].score);
          EXPECT_EQ(results[b][0].ended, expected[b].ended);
        }
      }
    }
  }
}

TEST(Beam, R30_ThatIsWideEnoughFindsWhatExhaustiveSearchFinds) {
  bool longer_wins = false;
  for (const uint64_t seed : {1, 2, 3}) {
    const models::EncoderDecoder model = toy_model(seed);
    Results all;
    enumerate(model, {3, 4}, 4, {}, all);
    ASSERT_EQ(all.size(), 341u);
    std::set<size_t> lengths;
    for (const double penalty : kPenalties) {
      sort_by_score(all, penalty);
      const auto found =
          beam_search(model, Sentences{{3, 4}},
                      {.beam = 400, .n_best = 20, .length_penalty = penalty, .max_length = 4});
      expect_near(found.front(), {all.begin(), all.begin() + 20});
      lengths.insert(all.front().ids.size());
    }
    longer_wins = longer_wins || lengths.size() > 1;
  }
  EXPECT_TRUE(longer_wins) << "no case where the penalty decides";
}

TEST(Beam, R30_EarlyStoppingSavesStepsAndChangesNothing) {
  set_profiling(true);
  int64_t early = 0, late = 0;
  for (const uint64_t seed : {1, 2, 3, 4, 5, 6}) {
    const models::EncoderDecoder model = make_model(small_config("rapt"), DType::f32, seed);
    for (const double penalty : kPenalties) {
      for (const int64_t beam : {2, 3, 6}) {
        for (const int64_t n_best : {int64_t{1}, beam - 1}) {
          BeamOptions options{.beam = beam,
                              .n_best = n_best,
                              .length_penalty = penalty,
                              .coverage_penalty = seed % 2 == 0 ? 0.4 : 0};
          const auto steps_of = [&](bool early_stopping, auto& results) {
            options.early_stopping = early_stopping;
            reset_profile();
            results = beam_search(model, kSentences, options);
            int64_t calls = 0;
            for (const ProfileRow& row : profile_rows()) calls += row.calls;
            return calls;
          };
          std::vector<Results> stopped, whole;
          early += steps_of(true, stopped);
          late += steps_of(false, whole);
          for (size_t b = 0; b < whole.size(); ++b) expect_equal(stopped[b], whole[b]);
        }
      }
    }
  }
  set_profiling(false);
  EXPECT_LT(early, late);
}

TEST(Beam, R33_WithACacheFindsWhatItFindsWithout) {
  Rng rng(7);
  for (const char* layout : {"rapt", "torch", "hand_built"}) {
    const models::EncoderDecoder model = make_model(small_config(layout), DType::f64, 5);
    for (int i = 0; i < 50; ++i) {
      Ids source(1 + static_cast<size_t>(rng.uniform(0, 6)));
      for (int32_t& id : source) id = 3 + static_cast<int32_t>(rng.uniform(0, 6));
      const BeamOptions options{.beam = 4, .n_best = 4, .length_penalty = 0.6, .max_length = 9};
      expect_near(beam_search(model, Sentences{source}, options).front(),
                  plain(model, source, options));
    }
  }
}

TEST(Beam, R31_MatesOrderAndThreadsChangeNothing) {
  const models::EncoderDecoder model = make_model(small_config("torch"), DType::f32, 2);
  for (const double coverage : {0.0, 0.3}) {
    const BeamOptions options{.beam = 4, .n_best = 3, .coverage_penalty = coverage};
    const auto together = beam_search(model, kSentences, options);
    for (const int threads : {1, 3}) {
      Runtime runtime({.threads = threads, .log = {}});
      const Runtime::Scope scope(runtime);
      for (size_t b = 0; b < kSentences.size(); ++b)
        expect_equal(beam_search(model, std::span(kSentences).subspan(b, 1), options)[0],
                     together[b]);
      const auto reversed =
          beam_search(model, Sentences(kSentences.rbegin(), kSentences.rend()), options);
      for (size_t b = 0; b < kSentences.size(); ++b)
        expect_equal(reversed[kSentences.size() - 1 - b], together[b]);
    }
  }
}

// Enough rows that the products of a batch run on other kernels than those of a sentence.
TEST(Beam, R31_NorDoesALargeBatch) {
  models::EncoderDecoderConfig config = small_config("torch");
  config.src_vocab_size = config.tgt_vocab_size = 300;
  config.d_model = 96;
  config.dim_feedforward = 200;
  config.max_len = 20;
  const models::EncoderDecoder model = make_model(config, DType::f32, 3);
  Rng rng(1);
  Sentences sentences(60);
  for (Ids& sentence : sentences) {
    sentence.resize(static_cast<size_t>(rng.uniform(0, 20)));
    for (int32_t& id : sentence) id = 3 + static_cast<int32_t>(rng.uniform(0, 297));
  }
  const BeamOptions options{.beam = 5, .n_best = 5};
  const auto together = beam_search(model, sentences, options);
  const auto of_one = beam_search(model, sentences, {.beam = 1});
  const auto best = greedy(model, sentences);
  for (size_t b = 0; b < sentences.size(); ++b) {
    expect_equal(beam_search(model, std::span(sentences).subspan(b, 1), options)[0], together[b]);
    EXPECT_EQ(of_one[b].front().ids, best[b].ids);
    EXPECT_EQ(of_one[b].front().log_probability, best[b].score);
  }
}

TEST(Beam, TheNBestAreSortedAllDifferentAndScoredAsTheModelScoresThem) {
  for (const uint64_t seed : {1, 2, 3}) {
    const models::EncoderDecoder model = make_model(small_config("rapt"), DType::f64, seed);
    for (const double penalty : kPenalties) {
      const auto results = beam_search(
          model, kSentences, {.beam = 6, .n_best = 6, .length_penalty = penalty, .max_length = 11});
      for (size_t b = 0; b < kSentences.size(); ++b) {
        if (kSentences[b].empty()) continue;
        ASSERT_EQ(results[b].size(), 6u);
        std::set<std::pair<Ids, bool>> seen;
        for (size_t i = 0; i < results[b].size(); ++i) {
          const Hypothesis& h = results[b][i];
          EXPECT_TRUE(seen.insert({h.ids, h.ended}).second);
          EXPECT_NEAR(h.log_probability, forced_score(model, kSentences[b], h.ids, h.ended), 1e-10);
          EXPECT_EQ(h.score, normalised(h.log_probability, h.ids, h.ended, penalty));
          EXPECT_LE(h.score, results[b][i == 0 ? 0 : i - 1].score);
        }
      }
    }
  }
}

// What the source's coverage adds, by equation 14 from whole computations.
double coverage_of(const models::EncoderDecoder& model, const Ids& source, const Hypothesis& h) {
  Ids chosen = h.ids;
  if (h.ended) chosen.push_back(model.config().end_id);
  const std::vector<double> looked = values_of(soft_alignment(model, source, chosen));
  double sum = 0;
  for (size_t s = 0; s < source.size(); ++s) {
    double total = 0;
    for (size_t t = 0; t < chosen.size(); ++t) total += looked[t * source.size() + s];
    sum += std::log(std::min(total, 1.0));
  }
  return sum;
}

TEST(Beam, CoverageIsThatOfTheWholeComputationAndReordersWhatHasEnded) {
  int reordered = 0;
  for (const uint64_t seed : {1, 2, 3, 4}) {
    const models::EncoderDecoder model = make_model(small_config("rapt"), DType::f64, seed);
    BeamOptions options{
        .beam = 6, .n_best = 6, .length_penalty = 0.6, .max_length = 4, .early_stopping = false};
    const auto plain = beam_search(model, kSentences, options);
    for (const double penalty : {0.2, 5.0}) {
      options.coverage_penalty = penalty;
      const auto covered = beam_search(model, kSentences, options);
      for (size_t b = 0; b < kSentences.size(); ++b) {
        if (kSentences[b].empty()) {
          EXPECT_EQ(covered[b].front().score, 0);
          continue;
        }
        Results expected = plain[b];
        for (Hypothesis& h : expected) h.score += penalty * coverage_of(model, kSentences[b], h);
        std::stable_sort(expected.begin(), expected.end(),
                         [](const auto& x, const auto& y) { return x.score > y.score; });
        expect_near(covered[b], expected);
        reordered += covered[b].front().ids != plain[b].front().ids;
      }
    }
  }
  EXPECT_GT(reordered, 0);
}

TEST(Beam, StopsAtTheLimitAndNeverLater) {
  const models::EncoderDecoder model = make_model(small_config("rapt"), DType::f32, 1);
  for (const int64_t limit : {1, 3, 12, 100}) {
    for (const Results& results :
         beam_search(model, kSentences, {.beam = 3, .n_best = 3, .max_length = limit})) {
      for (const Hypothesis& h : results) {
        const auto length = static_cast<int64_t>(h.ids.size());
        EXPECT_TRUE(h.ended ? length < std::min<int64_t>(limit, 12)
                            : length == std::min<int64_t>(limit, 12))
            << length << " " << h.ended;
      }
    }
  }
}

TEST(Beam, R31_TheRatioBoundsASentenceByItsOwnSource) {
  const models::EncoderDecoder model = make_model(small_config("rapt"), DType::f32, 1);
  const BeamOptions bound{.beam = 3, .n_best = 3, .max_length_ratio = 1.5, .max_length_extra = 1};
  const auto together = beam_search(model, kSentences, bound);
  for (size_t b = 0; b < kSentences.size(); ++b) {
    const auto tokens = static_cast<int64_t>(kSentences[b].size());
    const BeamOptions alone{.beam = 3, .n_best = 3, .max_length = tokens * 3 / 2 + 1};
    expect_equal(together[b],
                 beam_search(model, std::span(kSentences).subspan(b, 1), alone).front());
  }
}

TEST(Beam, EmptySentencesGiveOneEmptyHypothesisAndNoSentencesNone) {
  const models::EncoderDecoder model = make_model(small_config("rapt"), DType::f32);
  EXPECT_TRUE(beam_search(model, Sentences{}).empty());
  for (const Results& results : beam_search(model, Sentences{{}, {}}, {.beam = 4, .n_best = 4})) {
    ASSERT_EQ(results.size(), 1u);
    EXPECT_TRUE(results[0].ids.empty());
    EXPECT_TRUE(results[0].ended);
    EXPECT_EQ(results[0].score, 0);
  }
}

TEST(Beam, GivesFewerWhereThereAreFewer) {
  const models::EncoderDecoder model = toy_model(1);
  const auto results =
      beam_search(model, Sentences{{3}}, {.beam = 50, .n_best = 50, .max_length = 1});
  EXPECT_EQ(results.front().size(), 5u);
}

TEST(Beam, OptionsThatCannotBeTooLongSentencesAndBadWeightsAreErrors) {
  const models::EncoderDecoder model = make_model(small_config("rapt"), DType::f32);
  const auto error = [&](const Sentences& sentences, const BeamOptions& options) {
    return error_of([&] { beam_search(model, sentences, options); });
  };
  const auto expect_error = [](const std::string& message, const std::string& part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  expect_error(error({{3}}, {.beam = 0}), "expected a beam of at least 1, got 0");
  expect_error(error({{3}}, {.beam = 2, .n_best = 3}), "expected n_best of 1 to 2");
  expect_error(error({{3}}, {.beam = 2, .n_best = 0}), "expected n_best of 1 to 2");
  expect_error(error({{3}}, {.length_penalty = NAN}), "expected a length_penalty of -10 to 10");
  for (const double bad : {-0.1, 11.0, double{NAN}})
    expect_error(error({{3}}, {.coverage_penalty = bad}),
                 "expected a coverage_penalty of 0 to 10, got");
  expect_error(error({{3}}, {.max_length = -1}), "expected max_length of at least 0, got -1");
  expect_error(error({{3}, Ids(13, 3)}, {}),
               "sentence 1 has 13 tokens, the model has 12 positions");
  for (const NamedParameter& p : nn::parameters(model)) {
    Tensor value = p.value();
    if (p.name == "projection.bias") value.data<float>()[0] = NAN;
  }
  expect_error(error({{3}}, {}), "step 0");
}

}  // namespace
}  // namespace rapt::decode
