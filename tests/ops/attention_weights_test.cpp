// Weights of attention as results that are differentiated, their mean over heads, and what is added
// to the scores in every shape that may be shared.
#include "rapt/ops/elementwise.h"
#include "tests/ops/attention_problem.h"
#include "tests/testing/gradients.h"

namespace rapt {
namespace {

using testing::AttentionProblem;
using testing::bools;
using testing::check_f32;
using testing::check_gradients;
using testing::difference;
using testing::error_of;
using testing::random_tensor;
using testing::same_bits;
using testing::small_tiles;
using testing::values_of;
using Inputs = std::vector<Tensor>;

AttentionResult run(const AttentionProblem& p, const Inputs& x, const Mask& mask,
                    AttentionOptions options) {
  for (size_t i = 3; i < x.size(); ++i) options.bias = options.bias + x[i];
  return attention_with_weights(x[0], p.queries, x[1], x[2], p.keys, mask, options);
}

// Proves the gradients that come back through the weights.
void prove_weights(const AttentionProblem& p, const Mask& mask, const AttentionOptions& options,
                   const Inputs& bias = {}) {
  Inputs inputs = {p.q, p.k};
  inputs.insert(inputs.end(), bias.begin(), bias.end());
  const auto f = [&](const Inputs& x) {
    Inputs all = {x[0], x[1], p.v.to(x[0].dtype())};
    all.insert(all.end(), x.begin() + 2, x.end());
    return run(p, all, mask, options).weights;
  };
  EXPECT_TRUE(check_gradients(f, inputs, {.most = 80}));
  EXPECT_TRUE(check_f32(f, inputs));
}

TEST(AttentionWeights, AreDifferentiatedThroughTiles) {
  const AttentionProblem problem(Rows::packed({5, 0, 3, 1}), Rows::packed({6, 2, 9, 0}));
  for (const AttentionOptions& options : {small_tiles(), AttentionOptions{.scale = 0.3}}) {
    prove_weights(problem, {}, options);
    prove_weights(problem, Mask::causal(), options);
    prove_weights(problem, Mask::window(1), options);
  }
  AttentionOptions dropped = small_tiles();
  dropped.dropout = {0.4, {3, 4}};  // weights are those before it
  prove_weights(problem, {}, dropped);
}

TEST(AttentionWeights, AreDifferentiatedUnderMatricesAndBiases) {
  const AttentionProblem problem(Rows::equal(2, 5), Rows::equal(2, 6));
  std::vector<int> allowed(60);
  for (size_t i = 0; i < allowed.size(); ++i) allowed[i] = i * 7 % 5 < 3 && i / 6 != 3;
  prove_weights(problem, Mask::keep(bools(allowed, {2, 5, 6})), small_tiles(),
                {random_tensor({2, 1, 5, 6}, 5)});
}

// Context and weights of one call, added: both send a gradient back.
TEST(AttentionWeights, AndTheContextAreDifferentiatedTogether) {
  const AttentionProblem problem(Rows::equal(2, 3), Rows::equal(2, 4), 2, 3, 4);
  AttentionOptions options = small_tiles();
  options.dropout = {0.3, {1, 2}};
  const auto f = [&](const Inputs& x) {
    const AttentionResult result = run(problem, x, Mask::causal(), options);
    return add(result.context.reshape({2, 2, 3, 4}), result.weights);
  };
  EXPECT_TRUE(check_gradients(
      f, {problem.q, problem.k, problem.v, random_tensor({3, 4}, 5), random_tensor({8}, 6)}));
}

TEST(AttentionWeights, DependOnQueriesAndKeysAlone) {
  const AttentionProblem problem(Rows::packed({3}), Rows::packed({3}));
  Gradients gradients;
  const Tensor v = gradients.watch(problem.v);
  const AttentionResult result =
      attention_with_weights(problem.q, problem.queries, problem.k, v, problem.keys);
  EXPECT_TRUE(result.context.recorded());
  EXPECT_FALSE(result.weights.recorded());
}

TEST(AttentionWeights, R10_TheirMeanOverHeadsIsTheSumDividedByTheirNumber) {
  const Tensor weights = random_tensor({2, 3, 4, 5}, 1);
  const std::vector<double> w = values_of(weights), mean = values_of(mean_heads(weights));
  for (size_t b = 0; b < 2; ++b) {
    for (size_t i = 0; i < 20; ++i) {
      const double sum = w[b * 60 + i] + w[b * 60 + 20 + i] + w[b * 60 + 40 + i];
      EXPECT_EQ(mean[b * 20 + i], sum * (1.0 / 3));
    }
  }
  const auto f = [](const Inputs& x) { return mean_heads(x[0]); };
  EXPECT_TRUE(check_gradients(f, {weights}));
  EXPECT_TRUE(check_gradients(f, {random_tensor({0, 2, 3, 3}, 1)}));
  EXPECT_NE(error_of([] {
              mean_heads(random_tensor({2, 0, 3, 3}, 1));
            }).find("one head"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              mean_heads(random_tensor({2, 3, 3}, 1));
            }).find("(2, 3, 3)"),
            std::string::npos);
}

// Shapes over scores of 2 sentences, 3 heads, 4 queries and 5 keys, and the index of an element.
const std::vector<Shape> kShapes = {{10},         {4, 5},       {1, 5},       {2, 4, 5},
                                    {1, 4, 5},    {2, 1, 5},    {1, 1, 5},    {2, 3, 4, 5},
                                    {1, 3, 4, 5}, {2, 1, 4, 5}, {2, 3, 1, 5}, {2, 1, 1, 5},
                                    {1, 3, 1, 5}, {1, 1, 4, 5}, {1, 1, 1, 5}};

size_t place(const Shape& shape, int64_t b, int64_t h, int64_t i, int64_t j) {
  if (shape.rank() == 1) return static_cast<size_t>(b * 5 + j);
  int64_t at = 0;
  if (shape.rank() > 2 && shape[0] > 1) at = b;
  if (shape.rank() == 4) at = at * shape[1] + (shape[1] > 1 ? h : 0);
  return static_cast<size_t>((at * shape[-2] + (shape[-2] > 1 ? i : 0)) * 5 + j);
}

TEST(AttentionWeights, MasksAndBiasesOfEverySharedShapeFollowTheFormula) {
  const AttentionProblem problem(Rows::equal(2, 4), Rows::equal(2, 5), 3);
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(shape.text());
    std::vector<int> allowed(static_cast<size_t>(shape.numel()));
    for (size_t i = 0; i < allowed.size(); ++i) allowed[i] = i * 7 % 5 < 3;
    const Tensor bias = random_tensor(shape, 4), second = random_tensor({4, 5}, 9);
    const std::vector<double> added = values_of(bias), more = values_of(second);
    const testing::Sees sees = [&](auto... at) { return allowed[place(shape, at...)] == 1; };
    const testing::AddedScore plus = [&](auto... at) {
      return added[place(shape, at...)] + more[place({4, 5}, at...)];
    };
    AttentionOptions options = small_tiles();
    options.bias = ScoreBias(bias) + second;
    const Mask mask = Mask::keep(bools(allowed, shape));
    EXPECT_LE(difference(problem.run(mask, options), problem.formula(sees, plus)), 1e-13);
  }
}

TEST(AttentionWeights, BiasesOfEverySharedShapeAreDifferentiated) {
  const AttentionProblem problem(Rows::equal(2, 4), Rows::equal(2, 5), 3, 2, 2);
  for (size_t i = 0; i < kShapes.size(); ++i) {
    SCOPED_TRACE(kShapes[i].text());
    const auto f = [&](const Inputs& x) {
      AttentionOptions options = small_tiles();
      options.bias = ScoreBias(x[0]) + x[1];
      return problem.run(Mask::causal(), options);
    };
    EXPECT_TRUE(check_gradients(
        f, {random_tensor(kShapes[i], 4), random_tensor(kShapes[(i * 4 + 3) % kShapes.size()], 5)},
        {.most = 40}));
  }
}

TEST(AttentionWeights, AnUnevenBatchTakesOneAddedValueAKey) {
  const Rows queries = Rows::packed({3, 1, 4}), keys = Rows::packed({2, 5, 3});
  const AttentionProblem problem(queries, keys);
  const Tensor bias = random_tensor({10}, 3);
  const std::vector<double> added = values_of(bias);
  AttentionOptions options = small_tiles();
  options.bias = bias;
  EXPECT_LE(difference(problem.run({}, options),
                       problem.formula([](auto...) { return true; },
                                       [&](int64_t b, int64_t, int64_t, int64_t j) {
                                         return added[static_cast<size_t>(keys[b].row + j)];
                                       })),
            1e-13);
  EXPECT_TRUE(check_gradients(
      [&](const Inputs& x) {
        AttentionOptions with = small_tiles();
        with.bias = x[0];
        return problem.run({}, with);
      },
      {bias}));
}

TEST(AttentionWeights, AScaleOfZeroIsANumber) {
  const Rows rows = Rows::packed({4});
  const AttentionProblem problem(rows, rows);
  const AttentionResult result = problem.run_with_weights({}, {.scale = 0.0});
  for (const double w : values_of(result.weights)) EXPECT_EQ(w, 0.25);
}

TEST(AttentionWeights, WhatIsAddedMustFit) {
  const AttentionProblem problem(Rows::equal(2, 4), Rows::equal(2, 5), 3);
  const auto message = [&](const Tensor& bias) {
    return error_of([&] { problem.run({}, {.bias = bias}); });
  };
  EXPECT_NE(message(random_tensor({9}, 1)).find("10 packed keys, got 9"), std::string::npos);
  EXPECT_NE(message(random_tensor({4, 1}, 1)).find("(4, 5) (all but"), std::string::npos);
  EXPECT_NE(message(random_tensor({2, 2, 4, 5}, 1)).find("(2, 3, 4, 5) (all but"),
            std::string::npos);
  EXPECT_NE(message(random_tensor({4, 5}, 1, DType::f32)).find("bias of f64, got f32"),
            std::string::npos);
}

}  // namespace
}  // namespace rapt
