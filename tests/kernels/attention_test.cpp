// Tiled attention against plain loops in f64: shapes, masks, biases, gradients.
#include "rapt/kernels/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "tests/kernels/attention_problem.h"

namespace rapt {
namespace {

using testing::AttentionProblem;
using testing::AttentionShape;

// Runs one problem in f32 and in f64, after `prepare`, against the reference.
template <class Prepare>
void expect_reference(const AttentionShape& shape, uint64_t seed, Prepare&& prepare) {
  AttentionProblem<double> want(shape, seed), exact(shape, seed);
  AttentionProblem<float> single(shape, seed);
  prepare(want);
  prepare(exact);
  prepare(single);
  want.reference();
  exact.forward();
  exact.backward();
  expect_near(exact, want);
  single.forward();
  single.backward();
  expect_near(single, want);
}
const auto kPlain = [](auto&) {};

TEST(Attention, EqualsTheReferenceOnOneSentence) {
  expect_reference({.queries = {24}, .keys = {24}, .H = 4, .Dk = 64, .Dv = 64, .scale = 0.125}, 1,
                   kPlain);
}

TEST(Attention, EqualsTheReferenceOnManyTiles) {
  expect_reference({.queries = {300}, .keys = {530}, .H = 1, .Dk = 16, .Dv = 16}, 2, kPlain);
  expect_reference({.queries = {530}, .keys = {530}, .H = 1, .Dk = 16, .Dv = 16}, 3,
                   [](auto& problem) { problem.args.mask.causal = true; });
}

TEST(Attention, TakesEveryLength) {
  for (int64_t count = 1; count <= 40; ++count) {
    SCOPED_TRACE(count);
    expect_reference({.queries = {count}, .keys = {41 - count}, .H = 1, .Dk = 4, .Dv = 4}, 4,
                     kPlain);
  }
}

TEST(Attention, TakesEveryWidth) {
  for (int64_t width : {1, 2, 3, 5, 7, 8, 15, 17, 31, 33, 65}) {
    SCOPED_TRACE(width);
    expect_reference({.queries = {9}, .keys = {11}, .H = 3, .Dk = width, .Dv = 34 - width / 2}, 5,
                     kPlain);
  }
}

TEST(Attention, TakesRowsAnyDistanceApart) {
  const AttentionShape shape{
      .queries = {5, 19}, .keys = {21, 3}, .Dk = 16, .Dv = 16, .gap = 2, .padding = 3};
  expect_reference(shape, 6, kPlain);
}

TEST(Attention, AddsToGradientsThatSaySo) {
  expect_reference({.queries = {7, 3}, .keys = {4, 9}, .Dk = 5, .Dv = 16}, 7, [](auto& problem) {
    problem.grads.add_dq = problem.grads.add_dk = problem.grads.add_dv = true;
  });
}

TEST(Attention, GroupsOfQueryHeadsShareAKeyHead) {
  const AttentionShape shape{
      .queries = {37, 0, 20}, .keys = {29, 4, 300}, .H = 6, .Dk = 5, .Dv = 7, .Hk = 2};
  expect_reference(shape, 18, kPlain);
  for (const int64_t groups : {1, 4, 18}) {  // of the bias: within a key head and across them
    expect_reference(shape, 19, [groups](auto& problem) {
      problem.add_bias(groups);
      problem.add_keep(3);
      problem.grads.add_dk = true;
      problem.args.dropout = {.probability = 0.3, .key = {5, 6}};
    });
  }
}

// Sentences of many queries and keys may run on the CPU's bf16 tiles: as exact as in f32.
TEST(Attention, EqualsTheReferenceWhereProductsMayBeSplit) {
  const auto split = [](auto& problem) { problem.args.split = true; };
  expect_reference({.queries = {300, 31, 40}, .keys = {290, 40, 31}, .H = 2, .Dk = 64, .Dv = 64},
                   21, split);
  for (const bool causal : {false, true}) {  // more keys than the backward packs at a time
    expect_reference({.queries = {700, 130}, .keys = {800, 700}, .H = 1, .Dk = 33, .Dv = 20}, 25,
                     [&](auto& problem) {
                       split(problem);
                       problem.args.mask.causal = causal;
                       problem.grads.add_dq = problem.grads.add_dv = true;
                     });
  }
  expect_reference({.queries = {70, 33},
                    .keys = {40, 300},
                    .H = 4,
                    .Dk = 17,
                    .Dv = 45,
                    .gap = 1,
                    .padding = 3,
                    .Hk = 2},
                   22, split);
  for (const bool causal : {false, true}) {
    const auto masked = [&](auto& problem) {
      split(problem);
      problem.args.mask.causal = causal;
      problem.args.mask.window = 90;
      problem.add_keep_of_keys(2);
      problem.add_keep(5);
      problem.add_bias(1);
      problem.args.dropout = {.probability = 0.2, .key = {5, 6}};
    };
    expect_reference({.queries = {150, 140}, .keys = {170, 290}, .Dk = 32, .Dv = 40}, 23, masked);
  }
  for (const int64_t tile : {20, 40, 100}) {
    expect_reference({.queries = {150}, .keys = {170}, .Dk = 32, .Dv = 40}, 24, [&](auto& problem) {
      split(problem);
      problem.args.query_tile = problem.args.key_tile = tile;
    });
  }
}

// What has no parts in bf16 goes its way in f32: NaN stays in its row, infinity outweighs all.
TEST(Attention, InfinityAndNaNAreThoseOfF32WhereProductsMayBeSplit) {
  AttentionProblem<float> plain({.queries = {64}, .keys = {64}, .H = 1}),
      split({.queries = {64}, .keys = {64}, .H = 1});
  split.args.split = true;
  for (auto* p : {&plain, &split}) {
    p->q[3 * 8] = NAN;
    p->v[5 * 8 + 2] = INFINITY;
    p->k[7 * 8 + 1] = 3.4e38f;
    p->forward();
  }
  for (size_t i = 0; i < plain.out.size(); ++i) {
    EXPECT_EQ(std::isnan(split.out[i]), std::isnan(plain.out[i])) << i;
    if (!std::isnan(plain.out[i])) {
      EXPECT_EQ(split.out[i], plain.out[i]) << i;
    }
  }
  EXPECT_TRUE(std::isnan(split.out[3 * 8]));
}

// One head of several has such a number, or has gradients so large that their products would
// overflow: it alone is computed as without tiles.
TEST(Attention, GradientsOfWhatHasNoPartsAreThoseOfF32WhereProductsMayBeSplit) {
  const AttentionShape shape{.queries = {140}, .keys = {150}, .H = 3, .Dk = 8, .Dv = 8};
  for (const int where : {0, 1, 2, 3, 4}) {
    SCOPED_TRACE(where);
    AttentionProblem<float> plain(shape), split(shape);
    split.args.split = true;
    for (auto* p : {&plain, &split}) {
      const size_t at = 9 * 24 + 8 + 3;  // row 9 of head 1
      if (where == 0) p->q[at] = NAN;
      if (where == 1) p->v[at] = INFINITY;
      if (where == 2) p->k[at] = -INFINITY;
      if (where == 3) p->d_out[at] = NAN;
      if (where == 4) p->d_out[at] = p->v[at] = 1e25f;
    }
    plain.forward();
    split.out = plain.out;
    split.sums = plain.sums;
    plain.backward();
    split.backward();
    for (const auto& [got, want] :
         {std::pair{&split.dq, &plain.dq}, {&split.dk, &plain.dk}, {&split.dv, &plain.dv}}) {
      bool same = true;
      for (size_t i = 0; i < want->size(); ++i) {
        if (i % 24 / 8 != 1) {
          EXPECT_NEAR((*got)[i], (*want)[i], 1e-4) << i;
        } else {
          same = same && (std::isnan((*want)[i]) ? std::isnan((*got)[i]) : (*got)[i] == (*want)[i]);
        }
      }
      EXPECT_TRUE(same);
    }
  }
}

TEST(Attention, KeysBehindTheLastThatIsSeenCostNothingAndChangeNoBit) {
  for (const bool may_split : {false, true}) {
    AttentionProblem<float> hidden({.queries = {64}, .keys = {300}, .H = 1}),
        shorter({.queries = {64}, .keys = {300}, .H = 1});
    shorter.keys[0].count = 70;
    std::vector<uint8_t> keep(300);
    std::fill_n(keep.begin(), 70, uint8_t{1});
    const kernels::KeepMatrix matrix{.keep = keep.data()};
    hidden.args.mask.matrices = {&matrix, 1};
    hidden.args.split = shorter.args.split = may_split;
    for (auto* p : {&hidden, &shorter}) {
      p->forward();
      p->backward();
    }
    EXPECT_TRUE(testing::same_bits(hidden.out, shorter.out));
    EXPECT_TRUE(testing::same_bits(hidden.dq, shorter.dq));
  }
}

TEST(Attention, LeavesOutGradientsThatNobodyWants) {
  const AttentionShape shape{.queries = {17}, .keys = {17}};
  AttentionProblem<double> all(shape);
  all.forward();
  all.backward();
  for (int wanted = 0; wanted < 8; ++wanted) {
    AttentionProblem<double> some(shape);
    some.forward();
    if ((wanted & 1) == 0) some.grads.dq = nullptr;
    if ((wanted & 2) == 0) some.grads.dk = nullptr;
    if ((wanted & 4) == 0) some.grads.dv = nullptr;
    some.backward();
    EXPECT_EQ(testing::same_bits(some.dq, all.dq), (wanted & 1) != 0);
    EXPECT_EQ(testing::same_bits(some.dk, all.dk), (wanted & 2) != 0);
    EXPECT_EQ(testing::same_bits(some.dv, all.dv), (wanted & 4) != 0);
  }
}

TEST(Attention, HidesWhatTheMaskHides) {
  const AttentionShape shape{.queries = {37, 1, 20}, .keys = {37, 12, 30}, .Dk = 8, .Dv = 8};
  expect_reference(shape, 8, [](auto& problem) { problem.args.mask.causal = true; });
  expect_reference(shape, 9, [](auto& problem) { problem.args.mask.window = 4; });
  expect_reference(shape, 10, [](auto& problem) {
    problem.args.mask.causal = true;
    problem.args.mask.window = 0;
  });
  expect_reference(shape, 11, [](auto& problem) { problem.add_keep(3); });
  expect_reference(shape, 12, [](auto& problem) { problem.add_keep_of_keys(2); });
  expect_reference(shape, 13, [](auto& problem) {
    problem.args.mask.causal = true;
    problem.add_keep_of_keys(2);
    problem.add_keep(4);
  });
}

TEST(Attention, AWindowWiderThanAnythingHidesNothing) {
  AttentionProblem<float> wide({.queries = {20}, .keys = {20}}),
      open({.queries = {20}, .keys = {20}});
  wide.args.mask.window = INT64_MAX;
  wide.forward();
  open.forward();
  EXPECT_TRUE(testing::same_bits(wide.out, open.out));
}

TEST(Attention, AddsBiasesAndGivesTheirGradients) {
  const AttentionShape shape{.queries = {33, 7}, .keys = {18, 29}, .H = 3};
  for (int64_t groups : {0, 1, 2, 6}) {
    SCOPED_TRACE(groups);
    expect_reference(shape, 14, [groups](auto& problem) { problem.add_bias(groups); });
  }
  expect_reference(shape, 15, [](auto& problem) {
    problem.add_bias(6);
    problem.args.mask.causal = true;
    problem.add_keep(3);
  });
}

TEST(Attention, TakesLargeScores) {
  expect_reference({.queries = {12}, .keys = {30}, .scale = 30}, 16, [](auto& problem) {
    // In f32 a score of 100 leaves 1e-5 of its weight uncertain: small multiples of 1/4 are exact.
    for (auto* values : {&problem.q, &problem.k}) {
      for (auto& value : *values) value = std::round(value * 4) / 4;
    }
    problem.args.scale = 16;
  });
}

TEST(Attention, WeightsAreThoseOfTheForward) {
  const AttentionShape shape{.queries = {70, 5}, .keys = {300, 0}};
  AttentionProblem<double> want(shape);
  AttentionProblem<float> got(shape);
  for (int64_t b = 0; b < 2; ++b) {
    const size_t size = static_cast<size_t>(shape.queries[static_cast<size_t>(b)] * 304);
    std::vector<double> expected(size, testing::kUntouched);
    std::vector<float> weights(size, testing::kUntouched);
    want.args.mask.causal = got.args.mask.causal = true;
    got.forward();
    kernels::reference::attention_weights(want.args, b, 1, expected.data(), 304);
    kernels::attention_weights(got.args, got.sums.data(), b, 1, weights.data(), 304);
    EXPECT_LE(testing::difference(weights, expected), 1e-5);
  }
}

TEST(Attention, EqualsTheReferenceOnRandomProblems) {
  Rng rng(17);
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    const int64_t Hk = 1 + rng.below(2);
    AttentionShape shape{.H = Hk * (1 + rng.below(3)),
                         .Dk = 1 + rng.below(40),
                         .Dv = 1 + rng.below(40),
                         .gap = rng.below(3),
                         .padding = rng.below(5),
                         .offset = rng.below(30) - 10,
                         .Hk = Hk};
    for (int64_t b = rng.below(4); b >= 0; --b) {
      shape.queries.push_back(rng.below(70));
      shape.keys.push_back(rng.below(70));
    }
    const int64_t what = rng.below(64), window = rng.below(20), tile = 1 + rng.below(40),
                  rows = 1 + rng.below(40);
    expect_reference(shape, static_cast<uint64_t>(round), [&](auto& problem) {
      problem.args.mask.causal = (what & 1) != 0;
      if ((what & 2) != 0) problem.args.mask.window = window;
      if ((what & 4) != 0) problem.add_keep(3);
      if ((what & 8) != 0) problem.add_bias(1 + what % 3);
      if ((what & 16) != 0) problem.args.key_tile = tile, problem.args.query_tile = rows;
      if ((what & 32) != 0) problem.args.dropout = {.probability = 0.3, .key = {5, 6}};
    });
  }
}

}  // namespace
}  // namespace rapt
