// Attention on any number of threads gives the same bits.
#include <gtest/gtest.h>

#include <vector>

#include "rapt/base/runtime.h"
#include "tests/kernels/attention_problem.h"

namespace rapt {
namespace {

template <class T>
void expect_same_on_all_threads(const testing::AttentionShape& shape, int64_t groups) {
  const auto compute = [&](int threads) {
    Runtime runtime({.threads = threads});
    const Runtime::Scope scope(runtime);
    auto problem = std::make_unique<testing::AttentionProblem<T>>(shape);
    problem->args.mask.causal = true;
    problem->args.split = true;
    problem->args.dropout = {.probability = 0.1, .key = {1, 2}};
    if (groups > 0) problem->add_bias(groups);
    problem->forward();
    problem->backward();
    return problem;
  };
  const auto one = compute(1);
  for (const int threads : {2, 3}) {
    const auto many = compute(threads);
    EXPECT_TRUE(testing::same_bits(many->out, one->out));
    EXPECT_TRUE(testing::same_bits(many->sums, one->sums));
    EXPECT_TRUE(testing::same_bits(many->dq, one->dq));
    EXPECT_TRUE(testing::same_bits(many->dk, one->dk));
    EXPECT_TRUE(testing::same_bits(many->dv, one->dv));
    if (groups > 0) {
      EXPECT_TRUE(testing::same_bits(many->bias->gradient, one->bias->gradient));
    }
  }
}

TEST(AttentionThreads, AnyNumberOfThreadsGivesTheSameBits) {
  expect_same_on_all_threads<float>(
      {.queries = {400, 90}, .keys = {400, 90}, .H = 4, .Dk = 32, .Dv = 32}, 0);
  expect_same_on_all_threads<double>(
      {.queries = {100, 90, 3}, .keys = {100, 90, 60}, .H = 4, .Dk = 32, .Dv = 32}, 0);
}

TEST(AttentionThreads, GradientsOfABiasMeetInOrder) {
  const std::vector<int64_t> lengths(40, 30);
  expect_same_on_all_threads<float>(
      {.queries = lengths, .keys = lengths, .H = 4, .Dk = 32, .Dv = 32}, 3);
}

}  // namespace
}  // namespace rapt
