#include "rapt/kernels/reference.h"
#include "rapt/kernels/softmax.h"
#include "tests/kernels/matrices.h"

namespace rapt::kernels {
namespace {

using testing::Layout;
using testing::layouts;
using testing::Matrix;
using testing::same_bits;

constexpr int32_t kIgnore = -100;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Every third row is ignored.
std::vector<int32_t> make_targets(int64_t rows, int64_t V) {
  Rng rng(9);
  std::vector<int32_t> targets;
  for (int64_t i = 0; i < rows; ++i) {
    targets.push_back(i % 3 == 2 ? kIgnore : static_cast<int32_t>(rng.below(V)));
  }
  return targets;
}

TEST(CrossEntropy, MatchesTheFormulaInF64) {
  for (const double smoothing : {0.0, 0.1, 1.0}) {
    for (const Layout& at : layouts()) {
      if (at.cols == 0) continue;
      const Matrix<float> x(at, 1, -10, 10);
      const Matrix<double> wide(x);
      Matrix<float> d(at, 2), losses({1, at.rows, 0, 0}, 3), only({1, at.rows, 0, 0}, 3);
      Matrix<double> want_d(wide), want({1, at.rows, 0, 0}, 4);
      const auto targets = make_targets(at.rows, at.cols);
      cross_entropy(x.data(), x.ld(), targets.data(), kIgnore, smoothing, losses.data(), d.data(),
                    d.ld(), at.rows, at.cols);
      reference::cross_entropy(wide.data(), wide.ld(), targets.data(), kIgnore, smoothing,
                               want.data(), want_d.data(), want_d.ld(), at.rows, at.cols);
      EXPECT_LE(difference(losses, want), 4e-7) << at.rows << " x " << at.cols;
      EXPECT_LE(difference(d, want_d), 1e-6) << at.rows << " x " << at.cols;
      EXPECT_TRUE(d.guard_is_intact() && losses.guard_is_intact());
      cross_entropy(x.data(), x.ld(), targets.data(), kIgnore, smoothing, only.data(),
                    static_cast<float*>(nullptr), 0, at.rows, at.cols);
      EXPECT_TRUE(same_bits(losses, only)) << "without a gradient";
      Matrix<float> inside = x;
      cross_entropy(inside.data(), inside.ld(), targets.data(), kIgnore, smoothing, only.data(),
                    inside.data(), inside.ld(), at.rows, at.cols);
      EXPECT_TRUE(same_bits(losses, only) && same_bits(d, inside)) << "in place";
      EXPECT_TRUE(inside.guard_is_intact());
    }
  }
}

TEST(CrossEntropy, GradientAgreesWithFiniteDifferences) {
  const int64_t V = 7;
  for (const double smoothing : {0.0, 0.3}) {
    const Matrix<double> x({1, V, 0, 0}, 1);
    Matrix<double> d(x);
    const int32_t target = 2;
    double loss = 0;
    cross_entropy(x.data(), V, &target, kIgnore, smoothing, &loss, d.data(), V, 1, V);
    const auto value = [&](int64_t at, double shift) {
      Matrix<double> moved(x);
      moved(0, at) += shift;
      double result = 0;
      cross_entropy(moved.data(), V, &target, kIgnore, smoothing, &result,
                    static_cast<double*>(nullptr), 0, 1, V);
      return result;
    };
    for (int64_t j = 0; j < V; ++j) {
      EXPECT_NEAR(d(0, j), (value(j, 1e-5) - value(j, -1e-5)) / 2e-5, 1e-9);
    }
  }
}

TEST(CrossEntropy, SmoothingMixesInTheUniformDistribution) {
  const double smoothing = 0.2, x[4] = {0.5, -1, 2, 0};
  const int32_t target = 1;
  double loss = 0, total = 0, want = 0;
  cross_entropy(x, 4, &target, kIgnore, smoothing, &loss, static_cast<double*>(nullptr), 0, 1, 4);
  for (const double logit : x) total += std::exp(logit);
  for (int j = 0; j < 4; ++j) {
    const double share = (j == target ? 1 - smoothing : 0) + smoothing / 4;
    want -= share * (x[j] - std::log(total));
  }
  EXPECT_NEAR(loss, want, 1e-14);
}

// Whatever an ignored row holds, nothing of it is seen.
TEST(CrossEntropy, R13_RowsThatAreIgnoredGiveExactZerosNeverNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const double smoothing : {0.0, 0.2}) {
    for (const float content : {0.0f, nan, kInfinity, -kInfinity}) {
      Matrix<float> x({5, 19, 2, 1}, 1), d(x), losses({1, 5, 0, 0}, 2);
      for (int64_t i = 0; i < 5; ++i) std::fill(&x(i, 0), &x(i, 0) + 19, content);
      const std::vector<int32_t> targets(5, kIgnore);
      cross_entropy(x.data(), x.ld(), targets.data(), kIgnore, smoothing, losses.data(), d.data(),
                    d.ld(), 5, 19);
      for (int64_t i = 0; i < 5; ++i) {
        EXPECT_EQ(losses(0, i), 0);
        for (int64_t j = 0; j < 19; ++j) EXPECT_EQ(d(i, j), 0);
      }
    }
  }
}

TEST(CrossEntropy, R14_SmoothingSeesTheKeptRowsOnly) {
  const int64_t V = 13;
  const Matrix<float> x({6, V, 0, 0}, 1);
  const std::vector<int32_t> targets = {3, kIgnore, 0, 12, kIgnore, 5}, kept = {3, 0, 12, 5};
  Matrix<float> losses({1, 6, 0, 0}, 2), d(x), few({4, V, 0, 0}, 3), few_d(few),
      few_losses({1, 4, 0, 0}, 4);
  for (int64_t i = 0, k = 0; i < 6; ++i) {
    if (targets[static_cast<size_t>(i)] != kIgnore) std::copy_n(&x(i, 0), V, &few(k++, 0));
  }
  cross_entropy(x.data(), V, targets.data(), kIgnore, 0.2, losses.data(), d.data(), V, 6, V);
  cross_entropy(few.data(), V, kept.data(), kIgnore, 0.2, few_losses.data(), few_d.data(), V, 4, V);
  for (int64_t i = 0, k = 0; i < 6; ++i) {
    if (targets[static_cast<size_t>(i)] == kIgnore) continue;
    EXPECT_EQ(losses(0, i), few_losses(0, k));
    for (int64_t j = 0; j < V; ++j) EXPECT_EQ(d(i, j), few_d(k, j));
    ++k;
  }
  EXPECT_EQ(sum(losses.data(), 6), sum(few_losses.data(), 4));
}

// The index of an ignored row is never used as one: far outside of the classes, with smoothing.
TEST(CrossEntropy, R15_AnIgnoredTargetIsNoIndex) {
  const float x[2][2] = {{1, 2}, {0.5f, -0.5f}};
  const int32_t targets[2] = {-2000000000, 1};
  float losses[2], d[2][2];
  for (const double smoothing : {0.0, 0.1}) {
    cross_entropy(&x[0][0], 2, targets, -2000000000, smoothing, losses, &d[0][0], 2, 2, 2);
    EXPECT_EQ(losses[0], 0);
    const double log_total = std::log(std::exp(0.5) + std::exp(-0.5));
    const double first = log_total - 0.5, second = log_total + 0.5;  // minus log probabilities
    EXPECT_NEAR(losses[1], (1 - smoothing) * second + smoothing * (first + second) / 2, 1e-6);
  }
}

TEST(CrossEntropy, MaskedClassesCostNothingWithoutSmoothing) {
  const float x[3] = {1, -kInfinity, 2};
  const int32_t target = 0;
  float loss, d[3];
  cross_entropy(x, 3, &target, kIgnore, 0, &loss, d, 3, 1, 3);
  EXPECT_NEAR(loss, std::log(1 + std::exp(1.0)), 1e-6);
  EXPECT_EQ(d[1], 0);
  EXPECT_NEAR(d[2], 1 / (1 + std::exp(-1.0)), 1e-6);
  // With smoothing a class that cannot be costs infinitely much; the gradient stays finite.
  cross_entropy(x, 3, &target, kIgnore, 0.3, &loss, d, 3, 1, 3);
  EXPECT_EQ(loss, kInfinity);
  EXPECT_NEAR(d[1], -0.1, 1e-7);
}

TEST(CrossEntropy, ATargetThatCannotBeCostsInfinity) {
  const float x[2][3] = {{1, -kInfinity, 2}, {-kInfinity, -kInfinity, -kInfinity}};
  const int32_t targets[2] = {1, 1};
  float losses[2], d[2][3];
  cross_entropy(&x[0][0], 3, targets, kIgnore, 0, losses, &d[0][0], 3, 2, 3);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(losses[i], kInfinity);
    EXPECT_EQ(d[i][1], -1);
  }
  const Matrix<double> wide({2, 3, 0, 0}, 1);
  double wide_losses[2], wide_x[3] = {-INFINITY, -INFINITY, -INFINITY};
  cross_entropy(wide_x, 3, targets, kIgnore, 0, wide_losses, static_cast<double*>(nullptr), 0, 1,
                3);
  EXPECT_EQ(wide_losses[0], INFINITY);
}

TEST(CrossEntropy, ConfidentRowsDoNotOverflow) {
  const float x[3] = {1e4f, -1e4f, 0};
  const int32_t target = 1;
  float loss, d[3];
  cross_entropy(x, 3, &target, kIgnore, 0, &loss, d, 3, 1, 3);
  EXPECT_EQ(loss, 2e4f);
  EXPECT_EQ(d[0], 1);
  EXPECT_EQ(d[1], -1);
}

TEST(CrossEntropy, LargeVocabulariesKeepTheirAccuracy) {
  const int64_t V = 50257;
  const Matrix<float> x({2, V, 0, 0}, 1, -4, 4);
  const Matrix<double> wide(x);
  Matrix<float> d(x), losses({1, 2, 0, 0}, 2);
  Matrix<double> want_d(wide), want({1, 2, 0, 0}, 2);
  const int32_t targets[2] = {50256, 0};
  cross_entropy(x.data(), V, targets, kIgnore, 0.1, losses.data(), d.data(), V, 2, V);
  reference::cross_entropy(wide.data(), V, targets, kIgnore, 0.1, want.data(), want_d.data(), V, 2,
                           V);
  EXPECT_LE(difference(losses, want), 2e-7);
  EXPECT_LE(difference(d, want_d), 1e-7);
}

}  // namespace
}  // namespace rapt::kernels
