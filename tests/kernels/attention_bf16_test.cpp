// Attention in bf16, on the CPU's tiles where it has them: against the plain loops in f64 on the
// same numbers.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/kernels/attention_problem.h"

namespace rapt {
namespace {

using testing::AttentionProblem;
using testing::AttentionShape;

// A problem whose numbers bf16 can hold, and the same call in bf16.
struct NarrowProblem {
  NarrowProblem(const AttentionShape& shape, uint64_t seed) : wide(shape, seed) {
    q = narrowed(wide.q), k = narrowed(wide.k), v = narrowed(wide.v), d_out = narrowed(wide.d_out);
    out = narrowed(wide.out), dq = narrowed(wide.dq), dk = narrowed(wide.dk),
    dv = narrowed(wide.dv);
  }

  void run(bool may_split) {
    const auto& a = wide.args;
    const auto& g = wide.grads;
    kernels::AttentionArgs<bf16> args{.q = q.data(),
                                      .k = k.data(),
                                      .v = v.data(),
                                      .q_at = a.q_at,
                                      .k_at = a.k_at,
                                      .v_at = a.v_at,
                                      .queries = a.queries,
                                      .keys = a.keys,
                                      .H = a.H,
                                      .Dk = a.Dk,
                                      .Dv = a.Dv,
                                      .Hk = a.Hk,
                                      .scale = a.scale,
                                      .mask = a.mask,
                                      .bias = a.bias,
                                      .dropout = a.dropout,
                                      .split = may_split};
    kernels::attention(args, out.data(), g.out_at, wide.sums.data());
    kernels::AttentionGrads<bf16> grads;
    grads.out = out.data(), grads.d_out = d_out.data(), grads.sums = wide.sums.data();
    grads.out_at = g.out_at, grads.d_out_at = g.d_out_at;
    grads.dq = dq.data(), grads.dk = dk.data(), grads.dv = dv.data();
    grads.dq_at = g.dq_at, grads.dk_at = g.dk_at, grads.dv_at = g.dv_at;
    grads.add_dq = g.add_dq, grads.add_dk = g.add_dk, grads.add_dv = g.add_dv;
    kernels::attention_grad(args, grads);
  }

  // Rounds the numbers of the wide problem on the way.
  static std::vector<bf16> narrowed(std::vector<float>& values) {
    std::vector<bf16> narrow;
    for (float& value : values) {
      narrow.push_back(bf16(value));
      value = static_cast<float>(narrow.back());
    }
    return narrow;
  }
  static std::vector<float> widened(const std::vector<bf16>& values) {
    return {values.begin(), values.end()};
  }

  AttentionProblem<float> wide;
  std::vector<bf16> q, k, v, d_out, out, dq, dk, dv;
};

// The rounding of a result, of a weight and of a gradient of a score to 8 bits.
constexpr double kBound = 1.5e-2;

template <class Prepare>
void expect_reference(const AttentionShape& shape, uint64_t seed, Prepare&& prepare) {
  for (const bool may_split : {false, true}) {
    SCOPED_TRACE(may_split ? "may run on tiles" : "multiply-adds");
    NarrowProblem got(shape, seed);
    AttentionProblem<double> want(shape, seed);
    want.q.assign(got.wide.q.begin(), got.wide.q.end());
    want.k.assign(got.wide.k.begin(), got.wide.k.end());
    want.v.assign(got.wide.v.begin(), got.wide.v.end());
    want.d_out.assign(got.wide.d_out.begin(), got.wide.d_out.end());
    prepare(got.wide);
    prepare(want);
    got.run(may_split);
    want.reference();
    const auto widened = NarrowProblem::widened;
    // What nobody may touch stands in bf16 as in f64.
    EXPECT_LE(testing::difference(widened(got.out), want.out), kBound);
    EXPECT_LE(testing::difference(widened(got.dq), want.dq), kBound);
    EXPECT_LE(testing::difference(widened(got.dk), want.dk), kBound);
    EXPECT_LE(testing::difference(widened(got.dv), want.dv), kBound);
    if (got.wide.bias != nullptr) {
      EXPECT_LE(testing::difference(got.wide.bias->gradient, want.bias->gradient), kBound);
    }
  }
}
const auto kPlain = [](auto&) {};

TEST(AttentionBf16, EqualsTheReferenceOnManyTiles) {
  expect_reference({.queries = {300, 31, 40}, .keys = {290, 40, 31}, .Dk = 64, .Dv = 64}, 1,
                   kPlain);
  expect_reference({.queries = {70, 33, 700},
                    .keys = {40, 300, 600},
                    .H = 4,
                    .Dk = 17,
                    .Dv = 45,
                    .gap = 1,
                    .padding = 3,
                    .Hk = 2},
                   2, kPlain);
  expect_reference({.queries = {530}, .keys = {530}, .Dk = 32, .Dv = 16}, 3,
                   [](auto& problem) { problem.args.mask.causal = true; });
}

TEST(AttentionBf16, EqualsTheReferenceUnderMasksBiasesAndDropout) {
  for (const bool causal : {false, true}) {
    expect_reference({.queries = {150, 64}, .keys = {170, 290}, .Dk = 32, .Dv = 40}, 4,
                     [&](auto& problem) {
                       problem.args.mask.causal = causal;
                       problem.args.mask.window = 90;
                       problem.add_keep_of_keys(2);
                       problem.add_keep(5);
                       problem.add_bias(1);
                       problem.args.dropout = {.probability = 0.2, .key = {5, 6}};
                       problem.grads.add_dq = problem.grads.add_dk = problem.grads.add_dv = true;
                     });
  }
}

}  // namespace
}  // namespace rapt
