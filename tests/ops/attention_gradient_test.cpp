// Gradients of attention by finite differences in f64, through tiles made small.
#include "rapt/ops/elementwise.h"
#include "rapt/ops/linear.h"
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

// Proves q, k, v and, if options have one, the bias.
void prove(const AttentionProblem& p, const Mask& mask, const AttentionOptions& options) {
  const auto f = [&](const Inputs& x) {
    AttentionOptions with_bias = options;
    with_bias.bias = {};
    for (size_t i = 3; i < x.size(); ++i) with_bias.bias = with_bias.bias + x[i];
    return attention(x[0], p.queries, x[1], x[2], p.keys, mask, with_bias);
  };
  Inputs inputs = {p.q, p.k, p.v};
  for (const Tensor& term : options.bias.terms()) inputs.push_back(term);
  EXPECT_TRUE(check_gradients(f, inputs, {.most = 120}));
  EXPECT_TRUE(check_f32(f, inputs));
}

TEST(AttentionGradient, OfPackedSentences) {
  const std::vector<std::pair<Rows, Rows>> batches = {
      {Rows::packed({1}), Rows::packed({1})},
      {Rows::packed({9}), Rows::packed({9})},
      {Rows::packed({3, 1, 6}), Rows::packed({3, 1, 6})},
      {Rows::packed({2, 5, 0, 1}), Rows::packed({6, 3, 4, 0})},
      {Rows(), Rows()},
      {Rows::equal(2, 0), Rows::equal(2, 0)}};
  for (const auto& [queries, keys] : batches) {
    const AttentionProblem problem(queries, keys);
    prove(problem, {}, small_tiles());
    prove(problem, Mask::causal(), small_tiles());
    prove(problem, {}, {});
  }
}

TEST(AttentionGradient, OfOddWidthsAndHeads) {
  const Rows rows = Rows::packed({5, 2});
  for (const auto& [H, Dk, Dv] :
       {std::array<int64_t, 3>{1, 1, 1}, {3, 5, 2}, {2, 8, 17}, {5, 1, 3}}) {
    prove(AttentionProblem(rows, rows, H, Dk, Dv), Mask::causal(), small_tiles());
  }
}

TEST(AttentionGradient, UnderMasks) {
  const Rows rows = Rows::packed({7, 4});
  const AttentionProblem problem(rows, rows);
  std::vector<int> allowed(11);
  for (size_t i = 0; i < 11; ++i) allowed[i] = i % 3 != 1;
  const Mask by_key = Mask::keep(bools(allowed, {11}));
  for (const Mask& mask :
       {Mask::window(1), by_key, by_key & Mask::causal(), Mask::causal() & Mask::window(2)}) {
    prove(problem, mask, small_tiles());
  }
}

TEST(AttentionGradient, UnderMatricesOfEveryRankWithBiasOfEveryRank) {
  const Rows rows = Rows::equal(2, 5);
  const AttentionProblem problem(rows, rows);
  const std::vector<Shape> shapes = {{5, 5}, {2, 5, 5}, {2, 2, 5, 5}};
  for (const Shape& of_mask : shapes) {
    std::vector<int> allowed(static_cast<size_t>(of_mask.numel()));
    for (size_t i = 0; i < allowed.size(); ++i) allowed[i] = i * 7 % 5 < 3 || i % 6 == 0;
    for (const Shape& of_bias : shapes) {
      AttentionOptions options = small_tiles();
      options.bias = random_tensor(of_bias, 5);
      prove(problem, Mask::keep(bools(allowed, of_mask)), options);
    }
  }
}

TEST(AttentionGradient, WithBiasAndOtherLengthsOfKeys) {
  const AttentionProblem problem(Rows::equal(2, 3), Rows::equal(2, 6));
  for (const Shape& shape : {Shape{3, 6}, Shape{2, 3, 6}, Shape{2, 2, 3, 6}}) {
    AttentionOptions options = small_tiles();
    options.bias = random_tensor(shape, 5);
    options.scale = 0.7;
    prove(problem, {}, options);
    options.dropout = {0.3, {1, 2}};
    prove(problem, Mask::causal(), options);
  }
}

TEST(AttentionGradient, ThroughDropout) {
  const Rows rows = Rows::packed({6, 3});
  AttentionOptions options = small_tiles();
  options.dropout = {0.4, {3, 4}};
  prove(AttentionProblem(rows, rows), {}, options);
  prove(AttentionProblem(rows, rows), Mask::causal(), options);
}

TEST(AttentionGradient, OfViewsOfOneProduct) {
  const Rows rows = Rows::packed({4, 3});
  const auto stacked = [&](const Inputs& x) {
    const auto heads = [&](int64_t i) { return x[0].columns(6 * i, 6).reshape({7, 2, 3}); };
    return attention(heads(0), rows, heads(1), heads(2), rows, Mask::causal(), small_tiles());
  };
  EXPECT_TRUE(check_gradients(stacked, {random_tensor({7, 18}, 1)}));
  const auto projected = [&](const Inputs& x) {  // the same behind a product
    const Tensor product = linear(x[0], x[1], x[2]);
    const auto heads = [&](int64_t i) { return product.columns(6 * i, 6).reshape({7, 2, 3}); };
    const Tensor context =
        attention(heads(0), rows, heads(1), heads(2), rows, Mask::causal(), small_tiles());
    return add(linear(context.reshape({7, 6}), x[3]), x[0]);
  };
  EXPECT_TRUE(check_gradients(projected, {random_tensor({7, 6}, 1), random_tensor({18, 6}, 2),
                                          random_tensor({18}, 3), random_tensor({6, 6}, 4)}));
  const auto shared = [&](const Inputs& x) {  // one tensor is queries, keys and values
    const Tensor h = x[0].reshape({7, 2, 3});
    return attention(h, rows, h, h, rows, {}, small_tiles());
  };
  EXPECT_TRUE(check_gradients(shared, {random_tensor({7, 6}, 1)}));
}

TEST(AttentionGradient, R01_RowsThatSeeNothingLeaveAllOthersAlone) {
  // Two sentences of 4; the second has its last two keys masked, and each position sees itself and
  // the one before: its last query sees nothing.
  const Rows rows = Rows::equal(2, 4), alone = Rows::equal(1, 4);
  std::vector<int> band(16);
  for (size_t i = 0; i < 16; ++i) band[i] = i % 4 == i / 4 || i % 4 + 1 == i / 4;
  const Mask banded = Mask::keep(bools(band, {4, 4}));
  const Mask mask = banded & Mask::keep(bools({1, 1, 1, 1, 1, 1, 0, 0}, {8}));
  const Tensor x = random_tensor({8, 3}, 1);
  for (const DType dtype : {DType::f64, DType::f32}) {
    const Parameter w(random_tensor({9, 3}, 2, dtype));
    const auto run = [&](const Tensor& input, const Rows& r, const Mask& m, Gradients& gradients) {
      const Tensor product = linear(input.to(dtype), gradients.use(w));
      const int64_t N = input.dim(0);
      const auto head = [&](int64_t i) { return product.columns(3 * i, 3).reshape({N, 1, 3}); };
      const Tensor out = attention(head(0), r, head(1), head(2), r, m);
      const Tensor dy = random_tensor({4, 1, 3}, 9, dtype);
      backward(out.rows(0, 4), dy);  // a loss over the first sentence
      return out;
    };
    Gradients both, first;
    const Tensor out = run(x, rows, mask, both);
    run(x.rows(0, 4), alone, banded, first);
    EXPECT_EQ(values_of(out.rows(7, 1)), std::vector<double>(3, 0));
    EXPECT_LE(difference(both.of(w), first.of(w)), dtype == DType::f64 ? 1e-15 : 1e-6);
  }
}

TEST(AttentionGradient, R01_OfRowsThatSeeNothingIsZero) {
  const Rows rows = Rows::packed({5, 3});
  const AttentionProblem problem(rows, rows);
  prove(problem, Mask::keep(bools({0, 0, 1, 1, 0, 0, 0, 0}, {8})) & Mask::causal(), small_tiles());
  Gradients gradients;
  const Tensor q = gradients.watch(problem.q), k = gradients.watch(problem.k),
               v = gradients.watch(problem.v);
  testing::poison_free_memory({48, 64});
  const Mask nothing = Mask::keep(bools(std::vector<int>(8, 0), {8}));
  const Tensor out = attention(q, rows, k, v, rows, nothing);
  backward(out, random_tensor(out.shape(), 3));
  EXPECT_EQ(values_of(out), std::vector<double>(64, 0));
  EXPECT_EQ(values_of(gradients.of(q)), std::vector<double>(48, 0));
  EXPECT_EQ(values_of(gradients.of(k)), std::vector<double>(48, 0));
  EXPECT_EQ(values_of(gradients.of(v)), std::vector<double>(64, 0));
}

TEST(AttentionGradient, OfABiasThatHidesIsZeroThereAndFinite) {
  const Rows rows = Rows::equal(1, 4);
  const AttentionProblem problem(rows, rows);
  std::vector<double> bias = values_of(random_tensor({4, 4}, 5));
  for (const size_t hidden : {1u, 4u, 5u, 6u, 7u}) bias[hidden] = -INFINITY;
  Gradients gradients;
  AttentionOptions options = small_tiles();
  options.bias = gradients.watch(Tensor::from(bias, {4, 4}));
  backward(problem.run({}, options), random_tensor({4, 2, 4}, 3));
  const std::vector<double> g = values_of(gradients.of(options.bias.terms()[0]));
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_TRUE(std::isfinite(g[i])) << i;
    if (bias[i] == -INFINITY) {
      EXPECT_EQ(g[i], 0) << i;
    } else {
      EXPECT_NE(g[i], 0) << i;
    }
  }
}

TEST(AttentionGradient, R08_WidthsOfKeysAndValuesMayDiffer) {
  const Rows queries = Rows::packed({10, 4}), keys = Rows::packed({10, 6});
  for (const int64_t H : {1, 3}) prove(AttentionProblem(queries, keys, H, 8, 4), {}, small_tiles());
}

TEST(AttentionGradient, NeedsPackedRows) {
  const Rows gaps({{.row = 1, .count = 3, .position = 0, .sample = 0}});
  Gradients gradients;
  const Tensor q = gradients.watch(random_tensor({4, 2, 3}, 1)), plain = q.detach();
  EXPECT_NE(error_of([&] { attention(q, gaps, plain, plain, gaps); }).find("packed sentences"),
            std::string::npos);
  // Without gradients, rows between the sentences are zeros.
  EXPECT_EQ(values_of(attention(plain, gaps, plain, plain, gaps).rows(0, 1)),
            std::vector<double>(6, 0));
}

TEST(AttentionGradient, R07_RecordedAndNotWithWeightsAndWithoutAloneAndManyAgree) {
  const Rows rows = Rows::packed({5, 3, 4});
  for (const DType dtype : {DType::f64, DType::f32}) {
    const AttentionProblem problem(rows, rows, 2, 3, 4, dtype);
    const Mask mask = Mask::keep(bools({1, 1, 1, 1, 0, 1, 1, 0, 1, 1, 1, 0}, {12}));
    const Tensor plain = problem.run(mask);
    Gradients gradients;
    AttentionProblem recorded = problem;
    recorded.q = gradients.watch(problem.q);
    EXPECT_TRUE(same_bits(recorded.run(mask), plain));
    EXPECT_TRUE(same_bits(problem.run_with_weights(mask).context, plain));
    EXPECT_LE(difference(problem.run(mask, small_tiles()), plain), testing::equal_within(dtype));
    const Rows middle = Rows::packed({3});
    EXPECT_TRUE(
        same_bits(attention(problem.q.rows(5, 3), middle, problem.k.rows(5, 3),
                            problem.v.rows(5, 3), middle, Mask::keep(bools({1, 1, 0}, {3}))),
                  plain.rows(5, 3)));
  }
}

}  // namespace
}  // namespace rapt
