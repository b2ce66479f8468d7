// Attention where there is little to attend to: empty sentences, rows that see nothing, positions
// that do not meet, and its dropout element by element.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/kernels/attention_problem.h"

namespace rapt {
namespace {

using testing::AttentionProblem;
using testing::AttentionShape;

template <class T>
void expect_finite(const AttentionProblem<T>& problem) {
  for (const auto* values : {&problem.out, &problem.dq, &problem.dk, &problem.dv}) {
    for (const T value : *values) ASSERT_TRUE(std::isfinite(value));
  }
}

// pytorch/pytorch#41508
TEST(AttentionEdges, R01_ARowThatSeesNothingLeavesEveryGradientFinite) {
  const AttentionShape shape{.queries = {4, 4}, .keys = {4, 4}, .H = 1, .Dk = 1, .Dv = 1};
  AttentionProblem<float> problem(shape);
  const std::vector<uint8_t> keep = {
      1, 1, 1, 1, 0, 0, 1, 1};  // by key; with the window row 0 of sentence 1 sees nothing
  const kernels::KeepMatrix matrix{.keep = keep.data(), .offset_by_key_row = true};
  problem.args.mask = {.causal = true, .window = 1, .matrices = {&matrix, 1}};
  for (auto* segments : {&problem.queries, &problem.keys}) {
    for (auto& segment : *segments) segment.position = 0;
  }
  std::fill(problem.d_out.begin() + 4, problem.d_out.end(), 0.0f);  // the loss is over sentence 0
  problem.forward();
  problem.backward();
  expect_finite(problem);
  EXPECT_EQ(problem.out[4], 0);
  EXPECT_EQ(problem.out[5], 0);
  EXPECT_NE(problem.out[6], 0);
  EXPECT_EQ(problem.sums[4].most, -INFINITY);
  for (size_t i = 4; i < 8; ++i) EXPECT_EQ(problem.dq[i], 0);
}

// pytorch/pytorch#27968
TEST(AttentionEdges, R03_EmptySentencesAreZerosAndDisturbNoOther) {
  AttentionProblem<float> problem({.queries = {5, 3, 2, 0, 1}, .keys = {5, 3, 0, 4, 1}});
  problem.forward();
  problem.backward();
  expect_finite(problem);
  for (int64_t i = 0; i < 2; ++i) {
    for (const float value : problem.output(2, i)) EXPECT_EQ(value, 0);
    EXPECT_EQ(problem.sums[static_cast<size_t>((8 + i) * 2)].most, -INFINITY);
    for (int64_t c = 0; c < 16; ++c)
      EXPECT_EQ(problem.dq[static_cast<size_t>((8 + i) * 16 + c)], 0);
  }
  for (int64_t i = 8 * 16; i < 12 * 16; ++i) {  // keys that no query has
    EXPECT_EQ(problem.dk[static_cast<size_t>(i)], 0);
    EXPECT_EQ(problem.dv[static_cast<size_t>(i)], 0);
  }
}

TEST(AttentionEdges, R03_NothingAtAllIsFine) {
  for (const AttentionShape& shape : {AttentionShape{}, AttentionShape{.queries = {0}, .keys = {0}},
                                      AttentionShape{.queries = {3}, .keys = {4}, .H = 0}}) {
    AttentionProblem<double> problem(shape);
    problem.forward();
    problem.backward();
    for (const double value : problem.out) EXPECT_EQ(value, testing::kUntouched);
  }
}

TEST(AttentionEdges, HeadsWithoutWidthWeighAllKeysAlike) {
  AttentionProblem<double> problem({.queries = {3}, .keys = {4}, .H = 1, .Dk = 0, .Dv = 2});
  problem.forward();
  problem.backward();
  for (int64_t i = 0; i < 3; ++i) {
    const double mean = (problem.v[0] + problem.v[2] + problem.v[4] + problem.v[6]) / 4;
    EXPECT_NEAR(problem.output(0, i)[0], mean, 1e-15);
  }
  AttentionProblem<double> valueless({.queries = {3}, .keys = {4}, .H = 1, .Dk = 2, .Dv = 0});
  valueless.forward();
  valueless.backward();
  for (const double value : valueless.dq) EXPECT_EQ(value, 0);
}

// pytorch/pytorch#108108
TEST(AttentionEdges, R06_CausalityGoesByPosition) {
  for (const auto& [queries, keys] : {std::pair<int64_t, int64_t>{1, 8}, {3, 8}, {5, 2}}) {
    AttentionProblem<double> part({.queries = {queries}, .keys = {keys}, .offset = keys - queries});
    part.args.mask.causal = true;
    part.forward();
    std::vector<double> weights(static_cast<size_t>(queries * keys));
    kernels::attention_weights(part.args, part.sums.data(), 0, 0, weights.data(), keys);
    for (int64_t i = 0; i < queries; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < keys; ++j) {
        const double weight = weights[static_cast<size_t>(i * keys + j)];
        EXPECT_EQ(weight > 0, j <= i + keys - queries);
        sum += weight;
      }
      EXPECT_NEAR(sum, i + keys - queries >= 0 ? 1 : 0, 1e-15);
      if (i + keys - queries < 0) {
        for (const double value : part.output(0, i)) EXPECT_EQ(value, 0);
      }
    }
  }
}

TEST(AttentionEdges, ScoresFarApartDoNotOverflow) {
  AttentionProblem<float> problem(
      {.queries = {2}, .keys = {3}, .H = 1, .Dk = 1, .Dv = 1, .scale = 1});
  problem.q = {1, -1};
  problem.k = {1e30f, 0, -1e30f};
  problem.forward();
  problem.backward();
  EXPECT_EQ(problem.out[0], problem.v[0]);
  EXPECT_EQ(problem.out[1], problem.v[2]);
  expect_finite(problem);
}

TEST(AttentionEdges, NaNIsNotHidden) {
  AttentionProblem<float> problem({.queries = {2}, .keys = {20}, .H = 1, .Dk = 1, .Dv = 1});
  problem.k[17] = NAN;
  problem.forward();
  EXPECT_TRUE(std::isnan(problem.out[0]));
}

// Values that are unit vectors show each weight: which are dropped is philox_element()'s word
// alone.
template <class T>
void expect_dropped_by_philox(double probability, int64_t key_position) {
  constexpr int64_t kKeys = 150, kQueries = 9;
  AttentionProblem<T> problem(
      {.queries = {kQueries}, .keys = {kKeys}, .H = 2, .Dk = 4, .Dv = kKeys});
  problem.args.dropout = {.probability = probability, .key = {11, 12}};
  problem.keys[0].position = key_position;
  problem.queries[0].sample = 0x123456789ABCDEFu;
  std::fill(problem.v.begin(), problem.v.end(), T(0));
  for (int64_t j = 0; j < kKeys; ++j)
    problem.v[static_cast<size_t>(j * 2 * kKeys + j)] =
        problem.v[static_cast<size_t>(j * 2 * kKeys + kKeys + j)] = 1;
  problem.forward();
  std::vector<T> weights(kQueries * kKeys);
  for (int64_t h = 0; h < 2; ++h) {
    kernels::attention_weights(problem.args, problem.sums.data(), 0, h, weights.data(), kKeys);
    for (int64_t i = 0; i < kQueries; ++i) {
      for (int64_t j = 0; j < kKeys; ++j) {
        const uint32_t word =
            philox_element(philox_key_of_head({11, 12}, h), 0x123456789ABCDEFu,
                           static_cast<uint32_t>(3 + i), static_cast<uint32_t>(key_position + j));
        const double weight = static_cast<double>(weights[static_cast<size_t>(i * kKeys + j)]);
        const double want = word < dropout_threshold(probability) ? 0 : weight / (1 - probability);
        ASSERT_NEAR(static_cast<double>(problem.output(0, i)[static_cast<size_t>(h * kKeys + j)]),
                    want, 1e-5 * want);
      }
    }
  }
}

TEST(AttentionEdges, DropsWhatPhiloxSays) {
  expect_dropped_by_philox<float>(0.5, 0);
  expect_dropped_by_philox<float>(0.9, 77);
  expect_dropped_by_philox<float>(1e-9, 64);
  expect_dropped_by_philox<double>(0.3, 0);
  expect_dropped_by_philox<double>(0.7, 129);
}

}  // namespace
}  // namespace rapt
