#include "rapt/ops/cross_entropy.h"

#include "rapt/ops/elementwise.h"
#include "rapt/ops/linear.h"
#include "tests/testing/gradients.h"
#include "tests/testing/tensors.h"

namespace rapt {
namespace {

using testing::check_f32;
using testing::check_gradients;
using testing::difference;
using testing::error_of;
using testing::ids;
using testing::random_tensor;
using testing::same_bits;
using testing::values_of;
using Inputs = std::vector<Tensor>;

const std::vector<CrossEntropyOptions> kOptions = {{},
                                                   {.label_smoothing = 0.2},
                                                   {.ignore_index = 2},
                                                   {.ignore_index = 2, .label_smoothing = 0.1},
                                                   {.label_smoothing = 1}};

TEST(CrossEntropy, Gradients) {
  const Tensor targets = ids({0, 2, 4, -100, 2, 1});
  for (CrossEntropyOptions options : kOptions) {
    const Tensor t = options.ignore_index == 2 ? ids({0, 2, 4, 3, 2, 1}) : targets;
    const auto f = [&](const Inputs& x) { return cross_entropy(x[0], t, options).sum; };
    const Inputs logits = {random_tensor({6, 5}, 1, DType::f64, -3, 3)};
    EXPECT_TRUE(check_gradients(f, logits)) << options.label_smoothing;
    EXPECT_TRUE(check_f32(f, logits)) << options.label_smoothing;
    const auto on_view = [&](const Inputs& x) {
      return cross_entropy(x[0].columns(2, 5), t, options).sum;
    };
    EXPECT_TRUE(check_gradients(on_view, {random_tensor({6, 9}, 1)}));
    const auto in_place = [&](const Inputs& x) {  // the logits' memory becomes their gradient
      return cross_entropy(linear(x[0], x[1]), t, options).sum;
    };
    EXPECT_TRUE(check_gradients(in_place, {random_tensor({6, 3}, 1), random_tensor({5, 3}, 2)}));
  }
  const auto one_class = [](const Inputs& x) { return cross_entropy(x[0], ids({0, 0})).sum; };
  EXPECT_TRUE(check_gradients(one_class, {random_tensor({2, 1}, 1)}));
  const auto no_rows = [](const Inputs& x) { return cross_entropy(x[0], ids({})).sum; };
  EXPECT_TRUE(check_gradients(no_rows, {random_tensor({0, 4}, 1)}));
}

TEST(CrossEntropy, ValuesFollowTheFormula) {
  const Tensor logits = random_tensor({5, 7}, 1, DType::f64, -4, 4);
  const std::vector<int32_t> targets = {3, -100, 0, 6, 3};
  const double s = 0.15;
  const auto x = values_of(logits);
  double wanted = 0;
  for (size_t i = 0; i < 5; ++i) {
    if (targets[i] < 0) continue;
    double sum = 0;
    for (size_t j = 0; j < 7; ++j) sum += std::exp(x[i * 7 + j]);
    for (size_t j = 0; j < 7; ++j) {
      const double share = s / 7 + (static_cast<int32_t>(j) == targets[i] ? 1 - s : 0);
      wanted -= share * (x[i * 7 + j] - std::log(sum));
    }
  }
  const Loss loss = cross_entropy(logits, ids(targets), {.label_smoothing = s});
  EXPECT_EQ(loss.count, 4);
  EXPECT_NEAR(loss.sum.item(), wanted, 1e-13);
  EXPECT_NEAR(loss.mean(), wanted / 4, 1e-13);
}

TEST(CrossEntropy, TakesTheMemoryOfLogitsThatNobodyElseHolds) {
  for (const bool held : {false, true}) {
    Gradients gradients;
    const Tensor leaf = gradients.watch(random_tensor({4, 3}, 1)), values = leaf.contiguous_copy();
    const void* memory = nullptr;
    bool ran = false;
    Tensor logits = record(leaf.contiguous_copy(), {leaf}, [&](const Tensor& dy, Sink& d) {
      EXPECT_EQ(dy.raw() == memory, !held);
      ran = true;
      d.give(0, dy);
    });
    memory = std::as_const(logits).raw();
    const Tensor kept = held ? logits.detach() : Tensor();
    const Loss loss = cross_entropy(std::move(logits), ids({0, 1, 2, 0}));
    if (held) {
      EXPECT_TRUE(same_bits(kept, values));
    }
    backward(loss.sum);
    EXPECT_TRUE(ran);
  }
}

TEST(CrossEntropy, R13_NothingCountedIsZeroLossAndZeroGradients) {
  for (const DType dtype : {DType::f64, DType::f32}) {
    Gradients gradients;
    const Tensor leaf = gradients.watch(random_tensor({5, 4}, 1, dtype));
    const Loss loss =
        cross_entropy(leaf, ids({-100, -100, -100, -100, -100}), {.label_smoothing = 0.1});
    EXPECT_EQ(loss.count, 0);
    EXPECT_EQ(loss.sum.item(), 0);
    EXPECT_EQ(loss.mean(), 0);
    backward(loss.sum);
    EXPECT_EQ(values_of(gradients.of(leaf)), std::vector<double>(20, 0));
  }
}

TEST(CrossEntropy, R13_IgnoredRowsMayHoldAnything) {
  Gradients gradients;
  const Tensor leaf =
      gradients.watch(Tensor::from(std::vector<double>{NAN, INFINITY, 1, 2}, {2, 2}));
  const Loss loss = cross_entropy(leaf, ids({-100, 1}));
  EXPECT_EQ(loss.count, 1);
  EXPECT_TRUE(std::isfinite(loss.sum.item()));
  backward(loss.sum);
  const auto g = values_of(gradients.of(leaf));
  EXPECT_EQ(g[0], 0);
  EXPECT_EQ(g[1], 0);
}

TEST(CrossEntropy, R14_IgnoredRowsCountNeitherInSmoothingNorInTheMean) {
  const Tensor logits = random_tensor({6, 5}, 1);
  const std::vector<int32_t> targets = {1, -100, 3, 0, -100, 2};
  const CrossEntropyOptions options{.label_smoothing = 0.2};
  const Loss loss = cross_entropy(logits, ids(targets), options);
  std::vector<double> kept;
  const auto x = values_of(logits);
  for (size_t i : {0u, 2u, 3u, 5u}) {
    for (size_t j = 0; j < 5; ++j) kept.push_back(x[i * 5 + j]);
  }
  const Loss alone = cross_entropy(Tensor::from(kept, {4, 5}), ids({1, 3, 0, 2}), options);
  EXPECT_EQ(loss.count, alone.count);
  EXPECT_NEAR(loss.sum.item(), alone.sum.item(), 1e-13);
  EXPECT_NEAR(loss.mean(), alone.mean(), 1e-13);
}

TEST(CrossEntropy, R15_TheIgnoreIndexMayLieAnywhere) {
  // Far outside, just outside, inside: with and without smoothing, nothing is read at that index.
  for (const int32_t ignore : {INT32_MIN, -100, -1, 0, 1, 2, INT32_MAX}) {
    for (const double smoothing : {0.0, 0.1}) {
      const CrossEntropyOptions options{.ignore_index = ignore, .label_smoothing = smoothing};
      const int32_t other = ignore == 1 ? 0 : 1;
      const Tensor logits = random_tensor({2, 2}, 1);
      const Loss loss = cross_entropy(logits, ids({ignore, other}), options);
      const Loss alone =
          cross_entropy(logits.rows(1, 1), ids({other}), {.label_smoothing = smoothing});
      EXPECT_EQ(loss.count, 1);
      EXPECT_NEAR(loss.sum.item(), alone.sum.item(), 1e-14) << ignore << " " << smoothing;
    }
  }
}

TEST(CrossEntropy, R16_AccumulatedMicroBatchesEqualTheLargeBatch) {
  for (const DType dtype : {DType::f64, DType::f32}) {
    const Tensor x = random_tensor({112, 6}, 1, dtype);
    const Parameter w(random_tensor({9, 6}, 2, dtype));
    std::vector<int32_t> targets(112);
    for (size_t i = 0; i < targets.size(); ++i) targets[i] = static_cast<int32_t>(i * 5 % 9);
    targets[3] = targets[50] = -100;
    const auto step = [&](const std::vector<int64_t>& lengths, Gradients& gradients) {
      int64_t at = 0, count = 0;
      for (const int64_t length : lengths) {
        const std::vector<int32_t> part(targets.begin() + at, targets.begin() + at + length);
        const Loss loss = cross_entropy(linear(x.rows(at, length), gradients.use(w)), ids(part));
        backward(loss.sum);
        count += loss.count;
        at += length;
      }
      return scale(gradients.of(w), 1 / static_cast<double>(count));
    };
    Gradients whole, parts;
    const Tensor wanted = step({112}, whole);
    EXPECT_LE(difference(step({11, 101}, parts), wanted), testing::equal_within(dtype));
    Gradients with_an_ignored_one;  // its only row is ignored
    EXPECT_LE(difference(step({3, 1, 108}, with_an_ignored_one), wanted),
              testing::equal_within(dtype));
  }
}

TEST(CrossEntropy, WrongTargetsAreErrorsThatNameTheRow) {
  const Tensor logits = random_tensor({3, 4}, 1);
  EXPECT_NE(error_of([&] {
              cross_entropy(logits, ids({0, 4, 1}));
            }).find("below 4, got 4 in row 1"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              cross_entropy(logits, ids({0, 1, -1}));
            }).find("-1 in row 2"),
            std::string::npos);
  error_of([&] { cross_entropy(logits, ids({0, 1})); });
  error_of([&] { cross_entropy(logits, Tensor::zeros({3}, DType::i64)); });
  error_of([&] { cross_entropy(logits.reshape({12}), ids({0})); });
  error_of([&] { cross_entropy(logits, ids({0, 1, 2}), {.label_smoothing = 1.5}); });
  error_of([&] { cross_entropy(logits, ids({0, 1, 2}), {.label_smoothing = NAN}); });
}

}  // namespace
}  // namespace rapt
