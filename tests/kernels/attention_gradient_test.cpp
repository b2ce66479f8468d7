// Attention's gradients against finite differences, in f64 through the tiled kernel itself, its
// tiles made small.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "tests/kernels/attention_problem.h"

namespace rapt {
namespace {

using Problem = testing::AttentionProblem<double>;

// A fixed linear functional of the output: its gradient is problem.d_out.
double functional(Problem& problem) {
  problem.forward();
  double sum = 0;
  for (size_t b = 0; b < problem.queries.size(); ++b) {
    for (int64_t i = 0; i < problem.queries[b].count; ++i) {
      const auto row = problem.output(b, i);
      const double* d_out =
          problem.d_out.data() + (problem.queries[b].row + i) * problem.grads.out_at.row;
      for (size_t c = 0; c < row.size(); ++c) sum += row[c] * d_out[c];
    }
  }
  return sum;
}

// d functional / d values, by central differences of fourth order.
std::vector<double> by_differences(Problem& problem, std::vector<double>& values) {
  std::vector<double> gradient;
  const double step = 1e-3;
  for (double& value : values) {
    const double here = value;
    const auto at = [&](double x) {
      value = x;
      return functional(problem);
    };
    const double near = at(here + step) - at(here - step),
                 far = at(here + 2 * step) - at(here - 2 * step);
    gradient.push_back((8 * near - far) / (12 * step));
    value = here;
  }
  return gradient;
}

void expect_gradients(const testing::AttentionShape& shape,
                      const std::function<void(Problem&)>& prepare) {
  Problem problem(shape, 21);
  problem.args.key_tile = 4;
  problem.args.query_tile = 3;
  prepare(problem);
  problem.forward();
  for (auto* gradient : {&problem.dq, &problem.dk, &problem.dv})
    std::fill(gradient->begin(), gradient->end(), 0.0);
  problem.backward();
  const auto dq = problem.dq, dk = problem.dk, dv = problem.dv;
  EXPECT_LE((testing::relative_difference<double, double>(dq, by_differences(problem, problem.q))),
            1e-9);
  EXPECT_LE((testing::relative_difference<double, double>(dk, by_differences(problem, problem.k))),
            1e-9);
  EXPECT_LE((testing::relative_difference<double, double>(dv, by_differences(problem, problem.v))),
            1e-9);
  if (problem.bias != nullptr) {
    const auto gradient = problem.bias->gradient;
    EXPECT_LE((testing::relative_difference<double, double>(
                  gradient, by_differences(problem, problem.bias->values))),
              1e-9);
  }
}

TEST(AttentionGradient, EqualsFiniteDifferences) {
  const testing::AttentionShape shape{
      .queries = {7, 2}, .keys = {9, 5}, .Dk = 3, .Dv = 5, .gap = 1};
  expect_gradients(shape, [](Problem&) {});
}

TEST(AttentionGradient, EqualsFiniteDifferencesUnderMasks) {
  const testing::AttentionShape shape{
      .queries = {11, 6}, .keys = {11, 4}, .Dk = 5, .Dv = 3, .padding = 2};
  expect_gradients(shape, [](Problem& problem) { problem.args.mask.causal = true; });
  expect_gradients(shape, [](Problem& problem) {
    problem.args.mask.window = 3;
    problem.add_keep(3);
  });
}

TEST(AttentionGradient, EqualsFiniteDifferencesUnderDropout) {
  const testing::AttentionShape shape{.queries = {6}, .keys = {10}, .Dk = 4, .Dv = 4};
  expect_gradients(shape, [](Problem& problem) {
    problem.args.dropout = {.probability = 0.4, .key = {7, 8}};
  });
}

TEST(AttentionGradient, EqualsFiniteDifferencesOfABias) {
  const testing::AttentionShape shape{.queries = {7, 5}, .keys = {5, 9}, .Dk = 2, .Dv = 3};
  expect_gradients(shape, [](Problem& problem) {
    problem.add_bias(2);
    problem.args.mask.causal = true;
    problem.args.dropout = {.probability = 0.2, .key = {9, 9}};
  });
}

}  // namespace
}  // namespace rapt
