#include "rapt/data/batches.h"

#include <algorithm>
#include <set>

#include "rapt/base/random.h"
#include "tests/testing/testing.h"

namespace rapt::data {
namespace {

using testing::error_of;
using Ids = std::vector<int32_t>;
using Batches = std::vector<std::vector<int64_t>>;

// Pair i has the lines 2 i, its source 1 + i % 7 words, its target 1 + i * i % 11 words.
PairCorpus corpus_of(int64_t pairs) {
  PairCorpus corpus;
  for (int64_t i = 0; i < pairs; ++i) {
    const Ids source(static_cast<size_t>(1 + i % 7), static_cast<int32_t>(i));
    const Ids target(static_cast<size_t>(1 + i * i % 11), static_cast<int32_t>(i));
    corpus.add(source, target, static_cast<uint64_t>(2 * i));
  }
  return corpus;
}

Batches batches_of(const BatchPlan& plan) {
  Batches batches;
  for (int64_t b = 0; b < plan.size(); ++b) batches.emplace_back(plan[b].begin(), plan[b].end());
  return batches;
}

std::vector<int64_t> sorted(const Batches& batches) {
  std::vector<int64_t> pairs;
  for (const auto& batch : batches) pairs.insert(pairs.end(), batch.begin(), batch.end());
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

int64_t tokens(const PairCorpus& corpus, const std::vector<int64_t>& batch) {
  int64_t sum = 0;
  for (const int64_t pair : batch) {
    sum += corpus.sources.length(pair) + corpus.targets.length(pair) + 1;
  }
  return sum;
}

TEST(BatchPlan, InOrderItCutsTheCorpus) {
  const PairCorpus corpus = corpus_of(5);
  EXPECT_EQ(batches_of(BatchPlan(corpus, {.pairs = 2, .shuffle = false}, 0)),
            (Batches{{0, 1}, {2, 3}, {4}}));
  EXPECT_EQ(BatchPlan(corpus, {.pairs = 5, .shuffle = false}, 0).size(), 1);
  EXPECT_EQ(BatchPlan(corpus, {.pairs = 100, .shuffle = false}, 0).size(), 1);
  EXPECT_EQ(BatchPlan(PairCorpus{}, {.pairs = 2}, 0).size(), 0);
}

TEST(BatchPlan, EveryPairComesOnceInEveryEpoch) {
  const PairCorpus corpus = corpus_of(103);
  std::vector<int64_t> all(103);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  for (const bool shuffle : {false, true}) {
    for (const bool like_length : {false, true}) {
      for (const int64_t epoch : {0, 1, 7}) {
        BatchOptions options{.pairs = 10, .shuffle = shuffle, .like_length = like_length};
        EXPECT_EQ(sorted(batches_of(BatchPlan(corpus, options, epoch))), all);
        options.pairs = 0, options.tokens = 50;
        EXPECT_EQ(sorted(batches_of(BatchPlan(corpus, options, epoch))), all);
      }
    }
  }
}

TEST(BatchPlan, TheOrderDependsOnSeedAndEpochAlone) {
  const PairCorpus corpus = corpus_of(103);
  const auto plan = [&](uint64_t seed, int64_t epoch) {
    return batches_of(BatchPlan(corpus, {.pairs = 10, .like_length = true, .seed = seed}, epoch));
  };
  EXPECT_EQ(plan(1, 3), plan(1, 3));
  EXPECT_NE(plan(1, 3), plan(1, 4));
  EXPECT_NE(plan(1, 3), plan(2, 3));
}

// The known order is part of what makes a resumed run equal to an unbroken one.
TEST(BatchPlan, TheShuffleIsFisherAndYates) {
  std::vector<int64_t> expected = {0, 1, 2, 3, 4, 5, 6};
  Rng rng(hash_text("batches", 9), 2);
  for (size_t left = 7; left > 1; --left) {
    std::swap(expected[left - 1],
              expected[static_cast<size_t>(rng.below(static_cast<int64_t>(left)))]);
  }
  EXPECT_EQ(batches_of(BatchPlan(corpus_of(7), {.pairs = 7, .seed = 9}, 2)), Batches{expected});
}

TEST(BatchPlan, TokenBudgetIsFilledAndNeverPassed) {
  const PairCorpus corpus = corpus_of(200);
  const Batches batches = batches_of(BatchPlan(corpus, {.tokens = 64}, 0));
  for (size_t b = 0; b < batches.size(); ++b) {
    EXPECT_LE(tokens(corpus, batches[b]), 64);
    if (b + 1 < batches.size()) {
      EXPECT_GT(tokens(corpus, batches[b]) + tokens(corpus, {batches[b + 1][0]}), 64);
    }
  }
}

TEST(BatchPlan, PairOverTheBudgetIsNamedByItsLine) {
  PairCorpus corpus = corpus_of(3);
  corpus.add(Ids(30, 1), Ids(40, 1), 7);
  const std::string message = error_of([&] { BatchPlan(corpus, {.tokens = 70}, 0); });
  EXPECT_NE(message.find("the pair of line 8 has 71 tokens, a batch may have 70"),
            std::string::npos);
  EXPECT_EQ(sorted(batches_of(BatchPlan(corpus, {.tokens = 71}, 0))).size(), 4u);
}

TEST(BatchPlan, LikeLengthsGoTogetherInBatchesOfRandomOrder) {
  const PairCorpus corpus = corpus_of(200);
  const Batches batches = batches_of(BatchPlan(corpus, {.pairs = 10, .like_length = true}, 0));
  std::vector<int64_t> firsts;
  for (const auto& batch : batches) {
    std::set<int64_t> lengths;
    for (const int64_t pair : batch) lengths.insert(corpus.targets.length(pair));
    EXPECT_LE(lengths.size(), 3u);
    firsts.push_back(corpus.targets.length(batch[0]));
  }
  EXPECT_FALSE(std::is_sorted(firsts.begin(), firsts.end()));
}

TEST(BatchPlan, OptionsThatContradictAreRefused) {
  const PairCorpus corpus = corpus_of(3);
  error_of([&] { BatchPlan(corpus, {}, 0); });
  error_of([&] { BatchPlan(corpus, {.pairs = 1, .tokens = 1}, 0); });
  error_of([&] { BatchPlan(corpus, {.pairs = -1}, 0); });
  error_of([&] { BatchPlan(corpus, {.pairs = 1}, -1); });
  error_of([&] { BatchPlan(corpus, {.pairs = 1}, 0)[3]; });
}

TEST(PairBatch, TeacherForcingShiftsByOne) {
  PairCorpus corpus;
  corpus.add(Ids{1, 2}, Ids{5, 6, 7}, 40);
  corpus.add(Ids{3}, Ids{8}, 41);
  const PairBatch batch = make_batch(corpus, std::vector<int64_t>{1, 0}, 100, 101);
  EXPECT_EQ(batch.source, (Ids{3, 1, 2}));
  EXPECT_EQ(batch.target_in, (Ids{100, 8, 100, 5, 6, 7}));
  EXPECT_EQ(batch.target_out, (Ids{8, 101, 5, 6, 7, 101}));
  EXPECT_EQ(batch.source_lengths, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(batch.target_lengths, (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(batch.samples, (std::vector<uint64_t>{41, 40}));
}

// The end of a sentence is trained also where padding has the same id: lengths say what is padding.
TEST(PairBatch, R22_PaddingIsKnownByLength) {
  PairCorpus corpus;
  corpus.add(Ids{0, 1}, Ids{4, 0, 5}, 0);
  const PairBatch batch = make_batch(corpus, std::vector<int64_t>{0}, 2, 0);
  EXPECT_EQ(batch.target_out, (Ids{4, 0, 5, 0}));
  EXPECT_EQ(batch.source_lengths[0], 2);
  EXPECT_EQ(batch.target_lengths[0], 4);
}

}  // namespace
}  // namespace rapt::data
