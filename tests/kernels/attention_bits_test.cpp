// What may not change a bit of attention: batch mates, blocking, hidden keys, the pass a row is in.
#include <gtest/gtest.h>

#include <vector>

#include "tests/kernels/attention_problem.h"

namespace rapt {
namespace {

using testing::AttentionProblem;
using testing::AttentionShape;
using testing::same_bits;

template <class T>
class AttentionBits : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(AttentionBits, Types);

template <class T>
void expect_same(const AttentionProblem<T>& a, const AttentionProblem<T>& b) {
  EXPECT_TRUE(same_bits(a.out, b.out));
  EXPECT_TRUE(same_bits(a.sums, b.sums));
  EXPECT_TRUE(same_bits(a.dq, b.dq));
  EXPECT_TRUE(same_bits(a.dk, b.dk));
  EXPECT_TRUE(same_bits(a.dv, b.dv));
}

template <class T>
void run(AttentionProblem<T>& problem) {
  problem.forward();
  problem.backward();
}

TYPED_TEST(AttentionBits, TheSameRunGivesTheSameBits) {
  const AttentionShape shape{.queries = {45, 8}, .keys = {45, 300}, .Dk = 24, .Dv = 20};
  AttentionProblem<TypeParam> a(shape), b(shape);
  run(a);
  run(b);
  expect_same(a, b);
}

TYPED_TEST(AttentionBits, QueryTilesDoNotMatter) {
  const AttentionShape shape{.queries = {300, 13}, .keys = {300, 290}, .H = 1, .Dk = 12, .Dv = 33};
  for (const int way : {0, 1, 2, 3}) {
    const bool causal = way % 2 == 1, split = way >= 2;
    AttentionProblem<TypeParam> want(shape);
    want.args.split = split;
    want.args.mask.causal = causal;
    want.add_bias(0);
    want.args.dropout = {.probability = 0.1, .key = {1, 2}};
    run(want);
    for (const int64_t rows : {1, 5, 14, 64}) {
      AttentionProblem<TypeParam> got(shape);
      got.args.split = split;
      got.args.mask.causal = causal;
      got.add_bias(0);
      got.args.dropout = want.args.dropout;
      got.args.query_tile = rows;
      run(got);
      expect_same(got, want);
    }
  }
}

// Sentence b of `all` and the only sentence of `one` have the same numbers.
template <class T>
void copy_sentence(const AttentionProblem<T>& all, size_t b, AttentionProblem<T>& one) {
  const auto copy = [](const std::vector<T>& from, std::vector<T>& to, int64_t row, int64_t ld) {
    std::copy_n(from.begin() + row * ld, to.size(), to.begin());
  };
  copy(all.q, one.q, all.queries[b].row, all.args.q_at.row);
  copy(all.d_out, one.d_out, all.queries[b].row, all.grads.out_at.row);
  copy(all.k, one.k, all.keys[b].row, all.args.k_at.row);
  copy(all.v, one.v, all.keys[b].row, all.args.v_at.row);
  one.queries[0].sample = all.queries[b].sample;
}

TYPED_TEST(AttentionBits, BatchMatesDoNotMatter) {
  const AttentionShape shape{
      .queries = {3, 150, 24, 1, 0}, .keys = {270, 24, 24, 9, 5}, .Dk = 16, .Dv = 10};
  AttentionProblem<TypeParam> all(shape);
  all.args.dropout = {.probability = 0.2, .key = {3, 4}};
  run(all);
  for (size_t b = 0; b < all.queries.size(); ++b) {
    AttentionShape alone = shape;
    alone.queries = {shape.queries[b]};
    alone.keys = {shape.keys[b]};
    AttentionProblem<TypeParam> one(alone);
    one.args.dropout = all.args.dropout;
    copy_sentence(all, b, one);
    run(one);
    const auto rows = [](const std::vector<TypeParam>& of, int64_t row, int64_t ld, size_t count) {
      return std::span<const TypeParam>(of).subspan(static_cast<size_t>(row * ld), count);
    };
    using Span = std::span<const TypeParam>;
    EXPECT_TRUE(same_bits(Span(one.out),
                          rows(all.out, all.queries[b].row, all.grads.out_at.row, one.out.size())));
    EXPECT_TRUE(same_bits(Span(one.dq),
                          rows(all.dq, all.queries[b].row, all.args.q_at.row, one.dq.size())));
    EXPECT_TRUE(
        same_bits(Span(one.dk), rows(all.dk, all.keys[b].row, all.args.k_at.row, one.dk.size())));
    EXPECT_TRUE(
        same_bits(Span(one.dv), rows(all.dv, all.keys[b].row, all.args.v_at.row, one.dv.size())));
  }
}

// The last query of a causal pass over t tokens, from the whole pass over more tokens; once without
// the keys after it, once with them there and hidden.
template <class T>
void expect_steps_equal_the_whole(int64_t window, bool bias) {
  constexpr int64_t kTokens = 290;
  const AttentionShape shape{.queries = {kTokens}, .keys = {kTokens}, .H = 2, .Dk = 9, .Dv = 24};
  AttentionProblem<T> whole(shape);
  whole.args.mask.causal = true;
  whole.args.mask.window = window;
  if (bias) whole.add_bias(0);
  whole.forward();
  for (const int64_t t : {1, 2, 15, 16, 17, 33, 63, 64, 129, 255, 256, 257, 271, 290}) {
    for (const int64_t keys : {t, kTokens}) {
      AttentionProblem<T> step(shape);
      step.args.mask = whole.args.mask;
      if (bias) {
        step.add_bias(0);
        std::copy_n(whole.bias->values.begin() + (t - 1) * kTokens, kTokens,
                    step.bias->values.begin());
        const int64_t head = kTokens * kTokens;
        std::copy_n(whole.bias->values.begin() + head + (t - 1) * kTokens, kTokens,
                    step.bias->values.begin() + head);
      }
      step.queries[0] = {
          .row = t - 1, .count = 1, .position = whole.queries[0].position + t - 1, .sample = 0};
      step.keys[0].count = keys;
      step.forward();
      EXPECT_TRUE(same_bits(step.output(0, 0), whole.output(0, t - 1))) << t << " of " << keys;
    }
  }
}

TYPED_TEST(AttentionBits, ACachedStepEqualsTheRowOfTheWholePass) {
  expect_steps_equal_the_whole<TypeParam>(-1, false);
  expect_steps_equal_the_whole<TypeParam>(40, false);
  expect_steps_equal_the_whole<TypeParam>(-1, true);
}

TYPED_TEST(AttentionBits, HiddenKeysDoNotMatter) {
  const AttentionShape shape{.queries = {30}, .keys = {300}, .H = 1};
  std::vector<uint8_t> keep(300, 1);
  std::fill(keep.begin() + 40, keep.begin() + 290, uint8_t{0});
  const kernels::KeepMatrix matrix{.keep = keep.data()};
  AttentionProblem<TypeParam> a(shape), b(shape);
  for (int64_t i = 40 * a.args.k_at.row; i < 290 * a.args.k_at.row; ++i)
    b.k[static_cast<size_t>(i)] = 1e6;
  for (int64_t i = 40 * a.args.v_at.row; i < 290 * a.args.v_at.row; ++i)
    b.v[static_cast<size_t>(i)] = -1e6;
  a.args.mask.matrices = b.args.mask.matrices = {&matrix, 1};
  run(a);
  run(b);
  expect_same(a, b);
}

TYPED_TEST(AttentionBits, AMatrixOfPermissionsEqualsTheRuleItSpellsOut) {
  const AttentionShape shape{.queries = {300}, .keys = {300}, .H = 1};
  AttentionProblem<TypeParam> rule(shape), spelled(shape);
  rule.args.mask.causal = true;
  std::vector<uint8_t> keep(300 * 300);
  for (int64_t i = 0; i < 300; ++i) std::fill_n(keep.begin() + i * 300, i + 1, uint8_t{1});
  const kernels::KeepMatrix matrix{.keep = keep.data(), .stride_q = 300};
  spelled.args.mask.matrices = {&matrix, 1};
  run(rule);
  run(spelled);
  expect_same(rule, spelled);
}

// pytorch/pytorch#103963
TYPED_TEST(AttentionBits, R02_AMatrixOfPermissionsEqualsABiasOfMinusInfinity) {
  const AttentionShape shape{.queries = {8}, .keys = {8}, .H = 1};
  std::vector<uint8_t> keep(64, 1);
  std::fill(keep.begin() + 32, keep.end(), uint8_t{0});  // rows 4 to 7 see nothing
  keep[3] = keep[17] = 0;
  const kernels::KeepMatrix matrix{.keep = keep.data(), .stride_q = 8};
  AttentionProblem<TypeParam> masked(shape), biased(shape);
  masked.args.mask.matrices = {&matrix, 1};
  biased.add_bias(0);
  for (size_t i = 0; i < keep.size(); ++i)
    biased.bias->values[i] = keep[i] != 0 ? TypeParam(0) : -INFINITY;
  run(masked);
  run(biased);
  expect_same(masked, biased);
  for (int64_t i = 4; i < 8; ++i) {
    for (const TypeParam value : biased.output(0, i)) EXPECT_EQ(value, 0);
  }
  EXPECT_EQ(biased.sums[5].most, -INFINITY);
  for (const TypeParam value : biased.dq) EXPECT_TRUE(std::isfinite(value));
}

}  // namespace
}  // namespace rapt
