// torch.nn.functional.scaled_dot_product_attention: against the formula, and its differences from
// the original.
#include "rapt/nn/torch/scaled_dot_product_attention.h"

#include "tests/testing/gradients.h"
#include "tests/testing/tensors.h"

namespace rapt::nn::torch {
namespace {

using rapt::testing::bools;
using rapt::testing::check_f32;
using rapt::testing::check_gradients;
using rapt::testing::difference;
using rapt::testing::error_of;
using rapt::testing::random_tensor;
using rapt::testing::same_bits;
using rapt::testing::values_of;
using Options = ScaledDotProductAttentionOptions;
using Inputs = std::vector<Tensor>;

// Element (n, h, i, j) of a mask that broadcasts to (N, H, L, S).
double at(const Tensor& mask, std::array<int64_t, 4> index) {
  const std::vector<double> values = values_of(mask);
  int64_t place = 0;
  for (int axis = 0; axis < mask.rank(); ++axis) {
    const int64_t size = mask.dim(axis);
    place = place * size + (size == 1 ? 0 : index[static_cast<size_t>(4 - mask.rank() + axis)]);
  }
  return values[static_cast<size_t>(place)];
}

// The formula for (N, H, L, E), plain loops in f64.
Tensor formula(const Tensor& query, const Tensor& key, const Tensor& value, const Options& o = {}) {
  const int64_t N = query.dim(0), H = query.dim(1), L = query.dim(2), E = query.dim(3),
                Hk = key.dim(1), S = key.dim(2), Ev = value.dim(3);
  const std::vector<double> q = values_of(query), k = values_of(key), v = values_of(value);
  std::vector<double> out;
  for (int64_t row = 0; row < N * H * L; ++row) {
    const int64_t n = row / (H * L), h = row / L % H, i = row % L, g = n * Hk + h / (H / Hk);
    std::vector<double> w(static_cast<size_t>(S)), y(static_cast<size_t>(Ev));
    double sum = 0;
    for (int64_t j = 0; j < S; ++j) {
      if (o.is_causal && j > i + S - L) continue;
      double score = 0;
      for (int64_t c = 0; c < E; ++c)
        score += q[static_cast<size_t>(row * E + c)] * k[static_cast<size_t>((g * S + j) * E + c)];
      score *= o.scale.value_or(1 / std::sqrt(static_cast<double>(E)));
      if (o.attn_mask.defined()) {
        const double m = at(o.attn_mask, {n, h, i, j});
        if (o.attn_mask.dtype() != DType::boolean) score += m;
        if (o.attn_mask.dtype() == DType::boolean && m == 0) continue;
      }
      sum += w[static_cast<size_t>(j)] = std::exp(score);
    }
    for (int64_t j = 0; j < S && sum > 0; ++j) {
      for (int64_t c = 0; c < Ev; ++c)
        y[static_cast<size_t>(c)] +=
            w[static_cast<size_t>(j)] / sum * v[static_cast<size_t>((g * S + j) * Ev + c)];
    }
    out.insert(out.end(), y.begin(), y.end());
  }
  return Tensor::from(out, {N, H, L, Ev});
}

// Query, key and value of (N, H, L or S, E or Ev).
Inputs problem(int64_t N, int64_t H, int64_t L, int64_t S, DType dtype = DType::f64,
               int64_t Hk = 0) {
  if (Hk == 0) Hk = H;
  return {random_tensor({N, H, L, 3}, 1, dtype, -2, 2),
          random_tensor({N, Hk, S, 3}, 2, dtype, -2, 2), random_tensor({N, Hk, S, 2}, 3, dtype)};
}

Tensor run(const Inputs& x, const Options& options = {}, const Pass& pass = Pass()) {
  return scaled_dot_product_attention(x[0], x[1], x[2], options, pass);
}

void expect_formula(const Inputs& x, const Options& options) {
  const Tensor got = run(x, options);
  EXPECT_LE(difference(got, formula(x[0], x[1], x[2], options)),
            x[0].dtype() == DType::f64 ? 1e-13 : 1e-5);
}

const std::vector<Shape> kMasks = {
    {7},          {5, 7},       {1, 7},       {5, 1},       {1, 1},
    {4, 5, 7},    {1, 5, 7},    {4, 1, 7},    {4, 5, 1},    {2, 4, 5, 7},
    {2, 1, 1, 7}, {1, 4, 5, 7}, {2, 1, 5, 1}, {1, 1, 1, 1}, {}};

Tensor some_bools(const Shape& shape) {
  std::vector<int> values(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = i * 7 % 5 < 3;
  return bools(values, shape);
}

TEST(ScaledDotProductAttention, FollowsTheFormula) {
  for (const DType dtype : {DType::f64, DType::f32}) {
    const Inputs x = problem(2, 4, 5, 7, dtype);
    expect_formula(x, {});
    expect_formula(x, {.scale = 0.3});
    expect_formula(x, {.scale = 0.0});
    expect_formula(x, {.scale = -1.5});
    expect_formula(problem(1, 1, 1, 1, dtype), {});
    expect_formula(problem(2, 6, 5, 4, dtype, 2), {.enable_gqa = true});
    expect_formula(problem(2, 3, 5, 4, dtype, 1), {.is_causal = true, .enable_gqa = true});
    for (const Shape& shape : kMasks) {
      SCOPED_TRACE(shape.text());
      expect_formula(x, {.attn_mask = some_bools(shape)});
      expect_formula(x, {.attn_mask = random_tensor(shape, 4, dtype)});
    }
  }
}

TEST(ScaledDotProductAttention, TakesAnyNumberOfLeadingAxes) {
  const Inputs x = problem(6, 4, 5, 7);
  const Tensor wanted = run(x);
  const auto shaped = [&](std::initializer_list<int64_t> leading, int64_t first) {
    Inputs y;
    for (const Tensor& t : x) {
      std::vector<int64_t> sizes(leading);
      sizes.insert(sizes.end(), {t.dim(2), t.dim(3)});
      y.push_back(t.reshape({24, t.dim(2), t.dim(3)}).rows(0, first).reshape(Shape(sizes)));
    }
    return y;
  };
  const Tensor five = run(shaped({2, 3, 4}, 24));
  EXPECT_EQ(five.shape(), Shape({2, 3, 4, 5, 2}));
  EXPECT_TRUE(same_bits(five.reshape({6, 4, 5, 2}), wanted));
  EXPECT_TRUE(same_bits(run(shaped({1, 2, 3, 4}, 24)).reshape({6, 4, 5, 2}), wanted));
  EXPECT_TRUE(same_bits(run(shaped({24}, 24)).reshape({6, 4, 5, 2}), wanted));
  const Tensor two = run(shaped({}, 1));
  EXPECT_EQ(two.shape(), Shape({5, 2}));
  EXPECT_TRUE(same_bits(two, wanted.reshape({24, 5, 2}).rows(0, 1).reshape({5, 2})));
  // Masks of five axes, shared along some of them.
  const Inputs y = shaped({2, 3, 4}, 24);
  for (const Shape& shape :
       {Shape{2, 1, 4, 5, 7}, Shape{1, 3, 1, 5, 7}, Shape{2, 3, 1, 1, 7}, Shape{1, 1, 4, 1, 7}}) {
    const Tensor mask = random_tensor(shape, 5);
    std::vector<double> whole;  // (6, 4, 5, 7)
    const std::vector<double> m = values_of(mask);
    for (int64_t n = 0; n < 6 * 4 * 5 * 7; ++n) {
      const int64_t index[] = {n / 420, n / 140 % 3, n / 35 % 4, n / 7 % 5, n % 7};
      int64_t place = 0;
      for (int axis = 0; axis < 5; ++axis)
        place = place * shape[axis] + (shape[axis] == 1 ? 0 : index[axis]);
      whole.push_back(m[static_cast<size_t>(place)]);
    }
    EXPECT_LE(difference(run(y, {.attn_mask = mask}).reshape({6, 4, 5, 2}),
                         run(x, {.attn_mask = Tensor::from(whole, {6, 4, 5, 7})})),
              1e-15);
  }
}

TEST(ScaledDotProductAttention, IsDifferentiated) {
  const auto prove = [](const Inputs& inputs, const Options& options, uint64_t seed = 0) {
    const auto f = [&](const Inputs& x) {
      Options with = options;
      if (x.size() > 3) with.attn_mask = x[3];
      return run(x, with, Pass({.seed = seed}));
    };
    EXPECT_TRUE(check_gradients(f, inputs, {.most = 60}));
    EXPECT_TRUE(check_f32(f, inputs));
  };
  prove(problem(2, 2, 3, 5), {});
  prove(problem(2, 2, 3, 5), {.is_causal = true, .scale = 0.7});
  prove(problem(1, 2, 5, 3), {.is_causal = true});
  prove(problem(2, 4, 3, 2, DType::f64, 2), {.enable_gqa = true});
  prove(problem(2, 2, 3, 4), {.dropout_p = 0.4}, 9);
  for (const Shape& shape : kMasks) {
    SCOPED_TRACE(shape.text());
    Inputs x = problem(2, 4, 5, 7, DType::f64, 2);
    x.push_back(random_tensor(shape, 4));
    if (shape.rank() > 0 && shape[-1] > 1) {
      prove(x, {.enable_gqa = true});
      continue;
    }
    Gradients gradients;  // what a whole row shares moves nothing
    const Tensor mask = gradients.watch(x[3]);
    backward(run(x, {.attn_mask = mask, .enable_gqa = true}), random_tensor({2, 4, 5, 2}, 6));
    for (const double d : values_of(gradients.of(mask))) EXPECT_NEAR(d, 0, 1e-14);
  }
  Inputs five;  // a mask that is repeated along one of two batch axes
  for (const Tensor& t : problem(6, 2, 3, 4))
    five.push_back(t.reshape({2, 3, 2, t.dim(2), t.dim(3)}));
  five.push_back(random_tensor({2, 1, 1, 3, 4}, 6));
  prove(five, {});
}

TEST(ScaledDotProductAttention, ReadsViews) {
  const Tensor all = random_tensor({7, 12}, 1);
  const auto f = [](const Inputs& x) {
    return scaled_dot_product_attention(x[0].columns(0, 4), x[0].columns(4, 4), x[0].columns(8, 4));
  };
  EXPECT_TRUE(
      same_bits(f({all}), scaled_dot_product_attention(all.columns(0, 4).contiguous_copy(),
                                                       all.columns(4, 4).contiguous_copy(),
                                                       all.columns(8, 4).contiguous_copy())));
  EXPECT_TRUE(check_gradients(f, {all}));
}

TEST(ScaledDotProductAttention, DropoutActsWheneverItIsAboveZeroByThePassesSeedAndPath) {
  const Inputs x = problem(2, 2, 9, 9);
  const Options dropped{.dropout_p = 0.5};
  const Pass pass({.seed = 3});
  const Tensor a = run(x, dropped, pass);
  EXPECT_GT(difference(a, run(x)), 0.1);  // though the pass does not train
  EXPECT_TRUE(same_bits(a, run(x, dropped, Pass({.training = true, .seed = 3}))));
  EXPECT_FALSE(same_bits(a, run(x, dropped, Pass({.seed = 4}))));
  EXPECT_FALSE(same_bits(a, run(x, dropped, pass.scope("other"))));
  EXPECT_TRUE(same_bits(run(x, {.dropout_p = 0.0}, Pass({.training = true})), run(x)));
}

TEST(ScaledDotProductAttention, R01_ARowThatSeesNothingLeavesEveryGradientFinite) {
  for (const DType dtype : {DType::f64, DType::f32}) {
    const Inputs x = problem(2, 1, 4, 4, dtype);
    // Each position sees itself and the one before; the last two keys of sample 2 are padding.
    std::vector<int> allowed(32);
    for (size_t i = 0; i < 32; ++i) {
      const size_t row = i / 4 % 4, key = i % 4;
      allowed[i] = (row == key || row == key + 1) && (i < 16 || key < 2);
    }
    const Tensor mask = bools(allowed, {2, 1, 4, 4});
    Gradients both, one;
    Inputs watched, alone;
    for (const Tensor& t : x) {
      watched.push_back(both.watch(t));
      alone.push_back(one.watch(t.rows(0, 1).contiguous_copy()));
    }
    const Tensor out = run(watched, {.attn_mask = mask});
    EXPECT_EQ(values_of(out.reshape({8, 2}).rows(7, 1)), std::vector<double>(2, 0));
    const Tensor dy = random_tensor({1, 1, 4, 2}, 5, dtype);
    backward(out.rows(0, 1), dy);
    backward(run(alone, {.attn_mask = mask.rows(0, 1)}), dy);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_TRUE(same_bits(both.of(watched[i]).rows(0, 1), one.of(alone[i])));
      for (const double d : values_of(both.of(watched[i]).rows(1, 1))) EXPECT_EQ(d, 0);
    }
  }
}

TEST(ScaledDotProductAttention, R02_BoolAndMinusInfinityAgreeBitForBitAndEmptyRowsAreZero) {
  std::vector<int> allowed(64);
  for (size_t i = 0; i < 64; ++i) allowed[i] = i < 32 && i % 5 != 2;
  for (const DType dtype : {DType::f64, DType::f32}) {
    const Inputs x = problem(1, 2, 8, 8, dtype);
    std::vector<double> minus(64), billion(64);
    for (size_t i = 0; i < 64; ++i) {
      minus[i] = allowed[i] == 1 ? 0 : -INFINITY;
      billion[i] = allowed[i] == 1 ? 0 : -1e9;
    }
    const Tensor by_bool = run(x, {.attn_mask = bools(allowed, {8, 8})});
    EXPECT_TRUE(same_bits(by_bool, run(x, {.attn_mask = Tensor::from(minus, {8, 8}).to(dtype)})));
    const std::vector<double> out = values_of(by_bool), v = values_of(x[2]);
    EXPECT_EQ(std::vector<double>(out.begin() + 8, out.begin() + 16), std::vector<double>(8, 0));
    // -1e9 is another thing: a row of nothing else is uniform over its keys (in f32, where the
    // scores are lost beside it).
    if (dtype == DType::f64) continue;
    const std::vector<double> large =
        values_of(run(x, {.attn_mask = Tensor::from(billion, {8, 8}).to(dtype)}));
    for (size_t c = 0; c < 2; ++c) {
      double mean = 0;
      for (size_t j = 0; j < 8; ++j) mean += v[j * 2 + c] / 8;
      EXPECT_NEAR(large[8 + c], mean, 1e-6);
    }
  }
}

TEST(ScaledDotProductAttention, R03_EmptyAxesGiveEmptyResultsOrZeros) {
  for (const DType dtype : {DType::f64, DType::f32}) {
    EXPECT_EQ(run(problem(0, 2, 3, 4, dtype)).shape(), Shape({0, 2, 3, 2}));
    EXPECT_EQ(run(problem(2, 2, 0, 4, dtype), {.is_causal = true}).shape(), Shape({2, 2, 0, 2}));
    EXPECT_EQ(values_of(run(problem(2, 2, 3, 0, dtype))), std::vector<double>(24, 0));
    EXPECT_EQ(values_of(run(problem(2, 2, 3, 0, dtype), {.attn_mask = some_bools({3, 0})})),
              std::vector<double>(24, 0));
    EXPECT_EQ(run(problem(0, 2, 3, 4, dtype), {.attn_mask = some_bools({3, 4})}).numel(), 0);
    const Tensor none = Tensor::zeros({0, 3, 2}, dtype);  // (N, L, E) of none
    EXPECT_EQ(scaled_dot_product_attention(none, none, none).shape(), Shape({0, 3, 2}));
  }
  EXPECT_TRUE(check_gradients([](const Inputs& x) { return run(x); }, problem(2, 2, 3, 0)));
}

TEST(ScaledDotProductAttention, R04_TrueMeansMayBeSeen) {
  const Inputs x = problem(1, 2, 6, 6);
  std::vector<int> lower(36);
  for (size_t i = 0; i < 36; ++i) lower[i] = i % 6 <= i / 6;
  EXPECT_TRUE(same_bits(run(x, {.attn_mask = bools(lower, {6, 6})}), run(x, {.is_causal = true})));
}

TEST(ScaledDotProductAttention, R06_CausalQueriesAreTheLastOfTheWhole) {
  for (const DType dtype : {DType::f64, DType::f32}) {
    const Inputs x = problem(1, 1, 8, 8, dtype);
    const Tensor whole = run(x, {.is_causal = true}).reshape({8, 2});
    for (const int64_t L : {1, 3, 8}) {
      const Tensor last = x[0].reshape({8, 3}).rows(8 - L, L).reshape({1, 1, L, 3});
      const Tensor got = run({last, x[1], x[2]}, {.is_causal = true});
      EXPECT_TRUE(same_bits(got.reshape({L, 2}), whole.rows(8 - L, L)));
    }
    // L = 5, S = 2: the first three queries stand before every key.
    const Inputs few = problem(1, 1, 5, 2, dtype);
    const Tensor out = run(few, {.is_causal = true});
    EXPECT_EQ(values_of(out.reshape({5, 2}).rows(0, 3)), std::vector<double>(6, 0));
    expect_formula(few, {.is_causal = true});
  }
}

TEST(ScaledDotProductAttention, R07_RecordedOrNotAloneOrAmongManyTheOutputIsTheSame) {
  for (const DType dtype : {DType::f64, DType::f32}) {
    const Inputs x = problem(3, 2, 5, 6, dtype);
    const Options options{.attn_mask = some_bools({3, 1, 1, 6})};
    const Tensor plain = run(x, options);
    Gradients gradients;
    EXPECT_TRUE(same_bits(run({gradients.watch(x[0]), x[1], x[2]}, options), plain));
    EXPECT_TRUE(same_bits(run(x, options, Pass({.training = true})), plain));
    const Inputs alone = {x[0].rows(1, 1), x[1].rows(1, 1), x[2].rows(1, 1)};
    EXPECT_TRUE(
        same_bits(run(alone, {.attn_mask = options.attn_mask.rows(1, 1)}), plain.rows(1, 1)));
  }
}

TEST(ScaledDotProductAttention, R12_MasksOfLargeNumbersDoNotOverflow) {
  const Inputs x = problem(1, 1, 2, 2, DType::f32);
  const Tensor mask = Tensor::from(std::vector<float>{-3.4e38f, -3.4e38f, -INFINITY, 0}, {2, 2});
  const std::vector<double> out = values_of(run(x, {.attn_mask = mask})), v = values_of(x[2]);
  for (size_t c = 0; c < 2; ++c) {
    EXPECT_NEAR(out[c], (v[c] + v[2 + c]) / 2, 1e-6);
    EXPECT_EQ(out[2 + c], v[2 + c]);
  }
}

// In bf16, with a mask of f32 for the scores, on the CPU's tiles where it has them.
TEST(ScaledDotProductAttention, TakesInputsOfBf16) {
  const auto narrow = [](const Shape& shape, uint64_t seed) {
    return random_tensor(shape, seed).to(DType::bf16);
  };
  const Tensor q = narrow({2, 2, 40, 32}, 1), k = narrow({2, 2, 50, 32}, 2),
               v = narrow({2, 2, 50, 24}, 3), mask = random_tensor({40, 50}, 4);
  for (const bool masked : {false, true}) {
    Options options, wide;
    if (masked) options.attn_mask = mask.to(DType::f32), wide.attn_mask = mask;
    const Tensor y = scaled_dot_product_attention(q, k, v, options);
    EXPECT_EQ(y.dtype(), DType::bf16);
    const auto f64 = [](const Tensor& x) { return x.to(DType::f64); };
    EXPECT_LE(difference(y, formula(f64(q), f64(k), f64(v), wide)), 1e-2);
  }
  EXPECT_NE(error_of([&] {
              scaled_dot_product_attention(q, k, v, {.attn_mask = mask.to(DType::bf16)});
            }).find("attn_mask: expected bool or f32, got bf16"),
            std::string::npos);
}

}  // namespace
}  // namespace rapt::nn::torch
