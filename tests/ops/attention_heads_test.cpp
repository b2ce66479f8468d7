// Grouped heads and heads that come first, and scores that share a large offset.
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

// (B * T, H, D) as (B, H, T, D), and back.
Tensor heads_first(const Tensor& x, int64_t B, int64_t T) {
  const int64_t H = x.dim(1), D = x.dim(2);
  const std::vector<double> from = values_of(x);
  std::vector<double> to(from.size());
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t t = 0; t < T; ++t) {
      for (int64_t i = 0; i < H * D; ++i) {
        to[static_cast<size_t>(((b * H + i / D) * T + t) * D + i % D)] =
            from[static_cast<size_t>((b * T + t) * H * D + i)];
      }
    }
  }
  return Tensor::from(to, {B, H, T, D}).to(x.dtype());
}

// Each head of keys, (N, Hk, D), as often as query heads use it.
Tensor repeated(const Tensor& x, int64_t times) {
  const int64_t N = x.dim(0), Hk = x.dim(1), D = x.dim(2);
  const std::vector<double> from = values_of(x);
  std::vector<double> to;
  for (int64_t n = 0; n < N; ++n) {
    for (int64_t h = 0; h < Hk * times; ++h) {
      const auto begin = from.begin() + (n * Hk + h / times) * D;
      to.insert(to.end(), begin, begin + D);
    }
  }
  return Tensor::from(to, {N, Hk * times, D}).to(x.dtype());
}

TEST(AttentionHeads, FirstOrLastGiveTheSameBits) {
  const int64_t B = 2, Tq = 5, Tk = 7;
  const Rows queries = Rows::equal(B, Tq), keys = Rows::equal(B, Tk);
  for (const DType dtype : {DType::f64, DType::f32}) {
    const AttentionProblem p(queries, keys, 4, 3, 6, dtype);
    const Tensor k = p.k.reshape({B * Tk, 4, 3}), v = p.v;
    AttentionOptions options;
    options.dropout = {0.2, {1, 2}};
    options.bias = random_tensor({4, 1, Tq, Tk}, 1).reshape({1, 4, Tq, Tk}).to(dtype);
    Gradients last, first;
    const Inputs a = {last.watch(p.q), last.watch(k), last.watch(v)};
    const Inputs b = {first.watch(heads_first(p.q, B, Tq)), first.watch(heads_first(k, B, Tk)),
                      first.watch(heads_first(v, B, Tk))};
    const AttentionResult want =
        attention_with_weights(a[0], queries, a[1], a[2], keys, Mask::causal(), options);
    const AttentionResult got =
        attention_with_weights(b[0], queries, b[1], b[2], keys, Mask::causal(), options);
    EXPECT_EQ(got.context.shape(), Shape({B, 4, Tq, 6}));
    EXPECT_TRUE(same_bits(got.context, heads_first(want.context, B, Tq)));
    EXPECT_TRUE(same_bits(got.weights, want.weights));
    const Tensor dy = random_tensor(want.context.shape(), 3, dtype);
    const Tensor dw = random_tensor(want.weights.shape(), 4, dtype);
    backward(want.context, dy);
    backward(want.weights, dw);
    backward(got.context, heads_first(dy, B, Tq));
    backward(got.weights, dw);
    EXPECT_TRUE(same_bits(first.of(b[0]), heads_first(last.of(a[0]), B, Tq)));
    EXPECT_TRUE(same_bits(first.of(b[1]), heads_first(last.of(a[1]), B, Tk)));
    EXPECT_TRUE(same_bits(first.of(b[2]), heads_first(last.of(a[2]), B, Tk)));
  }
}

TEST(AttentionHeads, GroupsEqualRepeatedKeysBitForBit) {
  const Rows queries = Rows::packed({5, 3}), keys = Rows::packed({4, 6});
  for (const DType dtype : {DType::f64, DType::f32}) {
    for (const int64_t Hk : {1, 2, 3, 6}) {
      const Tensor q = random_tensor({8, 6, 3}, 1, dtype), k = random_tensor({10, Hk, 3}, 2, dtype),
                   v = random_tensor({10, Hk, 4}, 3, dtype);
      const AttentionResult want =
          attention_with_weights(q, queries, repeated(k, 6 / Hk), repeated(v, 6 / Hk), keys);
      const AttentionResult got = attention_with_weights(q, queries, k, v, keys);
      EXPECT_TRUE(same_bits(got.context, want.context));
      EXPECT_TRUE(same_bits(got.weights, want.weights));
    }
  }
}

TEST(AttentionHeads, GradientsOfAKeyHeadAreSumsOverItsQueryHeads) {
  const Rows queries = Rows::equal(2, 3), keys = Rows::equal(2, 5);
  for (const int64_t Hk : {1, 2}) {
    const Inputs inputs = {random_tensor({6, 4, 3}, 1), random_tensor({10, Hk, 3}, 2),
                           random_tensor({4, 3, 5}, 4), random_tensor({10, Hk, 2}, 3)};
    const auto run = [&](const Inputs& x, const Tensor& v) {
      AttentionOptions options = small_tiles();
      options.bias = x[2].reshape({1, 4, 3, 5});
      options.dropout = {0.3, {1, 2}};
      return attention_with_weights(x[0], queries, x[1], v, keys, Mask::causal(), options);
    };
    const auto context = [&](const Inputs& x) { return run(x, x[3]).context; };
    const auto weights = [&](const Inputs& x) {
      return run(x, inputs[3].to(x[0].dtype())).weights;
    };
    EXPECT_TRUE(check_gradients(context, inputs, {.most = 60}));
    EXPECT_TRUE(check_f32(context, inputs));
    const Inputs but_values(inputs.begin(), inputs.end() - 1);
    EXPECT_TRUE(check_gradients(weights, but_values, {.most = 60}));
    EXPECT_TRUE(check_f32(weights, but_values));
  }
}

TEST(AttentionHeads, FirstAreDifferentiatedInGroups) {
  const Rows queries = Rows::equal(2, 3), keys = Rows::equal(2, 4);
  const auto f = [&](const Inputs& x) {
    return attention(x[0], queries, x[1], x[2], keys, Mask::window(2), small_tiles());
  };
  EXPECT_TRUE(check_gradients(f, {random_tensor({2, 4, 3, 3}, 1), random_tensor({2, 2, 4, 3}, 2),
                                  random_tensor({2, 2, 4, 5}, 3)}));
}

TEST(AttentionHeads, R09_ThatDoNotFitAreErrors) {
  const Rows rows = Rows::equal(1, 4);
  const auto message = [&](const Shape& q, const Shape& k, const Shape& v) {
    return error_of([&] {
      attention(random_tensor(q, 1), rows, random_tensor(k, 2), random_tensor(v, 3), rows);
    });
  };
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(has(message({4, 3, 2}, {4, 0, 2}, {4, 0, 2}), "Hk 0"));
  EXPECT_TRUE(has(message({4, 0, 2}, {4, 1, 2}, {4, 1, 2}), "H 0"));
  EXPECT_TRUE(has(message({4, 3, 2}, {4, 2, 2}, {4, 2, 2}), "expected 3 heads"));
  EXPECT_TRUE(has(message({4, 2, 2}, {4, 4, 2}, {4, 4, 2}), "expected 2 heads"));
  EXPECT_TRUE(has(message({4, 4, 2}, {4, 2, 2}, {4, 4, 2}), "values with 4"));
  EXPECT_TRUE(has(message({1, 2, 4, 2}, {4, 2, 2}, {4, 2, 2}), "(B, H, Tq, Dk)"));
  EXPECT_TRUE(has(message({2, 2, 2, 2}, {1, 2, 4, 2}, {1, 2, 4, 2}), "2 sentences of 2 tokens"));
  EXPECT_TRUE(has(message({1, 2, 4, 2}, {1, 2, 4, 2}, {1, 2, 3, 2}), "as many values"));
}

// Every weight of a row whose scores all lie at -1e9 is 1 / Tk in f32, in what is handed out and in
// what the gradients are made with.
TEST(AttentionHeads, R02_MinusABillionIsUniformOverTheRowInWeightsAndGradients) {
  const int64_t T = 300;  // more than one tile
  const Rows rows = Rows::equal(1, T);
  const AttentionProblem p(rows, rows, 1, 4, 4, DType::f32);
  Gradients gradients;
  const Tensor v = gradients.watch(p.v),
               bias = gradients.watch(Tensor::full({T}, DType::f32, -1e9));
  AttentionOptions options;
  options.bias = bias;
  const AttentionResult result = attention_with_weights(p.q, rows, p.k, v, rows, {}, options);
  for (const double w : values_of(result.weights)) EXPECT_NEAR(w, 1.0 / T, 1e-8);
  const Tensor dy = random_tensor(p.v.shape(), 5, DType::f32);
  backward(result.context, dy);
  const std::vector<double> dv = values_of(gradients.of(v)), d = values_of(dy);
  for (size_t c = 0; c < 4; ++c) {
    double mean = 0;
    for (size_t i = 0; i < static_cast<size_t>(T); ++i)
      mean += d[i * 4 + c] / static_cast<double>(T);
    for (size_t j = 0; j < static_cast<size_t>(T); ++j) EXPECT_NEAR(dv[j * 4 + c], mean, 1e-6);
  }
}

// An offset that all keys share changes nothing but for the digits that the scores lose beside it.
TEST(AttentionHeads, R12_AnOffsetOfAllScoresLeavesWeightsThatSumToOne) {
  const int64_t T = 40;
  const Rows rows = Rows::equal(2, T);
  AttentionProblem p(rows, rows, 2, 4, 4, DType::f32);
  for (const double offset : {1e4, -1e4, -1e9, 1e9}) {
    const auto run = [&](double by, DType dtype, Inputs* d) {
      Gradients gradients;
      const Inputs x = {gradients.watch(p.q.to(dtype)), gradients.watch(p.k.to(dtype)),
                        gradients.watch(p.v.to(dtype)),
                        gradients.watch(Tensor::full({2 * T}, dtype, by))};
      AttentionOptions options;
      options.bias = x[3];
      const AttentionResult result =
          attention_with_weights(x[0], rows, x[1], x[2], rows, Mask::causal(), options);
      backward(result.context, random_tensor(result.context.shape(), 5, dtype));
      for (const Tensor& input : x) d->push_back(gradients.of(input));
      return result;
    };
    Inputs got, want;
    const AttentionResult single = run(offset, DType::f32, &got);
    const std::vector<double> w = values_of(single.weights);
    for (size_t row = 0; row < w.size(); row += static_cast<size_t>(T)) {
      double sum = 0;
      for (size_t j = 0; j < static_cast<size_t>(T); ++j) sum += w[row + j];
      EXPECT_NEAR(sum, 1, 1e-6);
    }
    double total = 0;  // moving all scores of a row moves nothing
    for (const double d : values_of(got[3])) total += d;
    EXPECT_NEAR(total, 0, 1e-4);
    if (std::abs(offset) > 1e5) continue;  // the scores are lost
    const AttentionResult exact = run(0, DType::f64, &want);
    EXPECT_LE(difference(single.context, exact.context), 2e-3);
    for (size_t i = 0; i < 3; ++i) EXPECT_LE(difference(got[i], want[i]), 5e-3) << i;
  }
}

}  // namespace
}  // namespace rapt
