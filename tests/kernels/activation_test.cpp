#include "rapt/kernels/elementwise.h"
#include "rapt/kernels/reference.h"
#include "tests/kernels/matrices.h"

namespace rapt::kernels {
namespace {

using testing::Layout;
using testing::layouts;
using testing::Matrix;
using testing::same_bits;

constexpr Activation kKinds[] = {Activation::relu, Activation::gelu, Activation::gelu_tanh};

TEST(Activation, MatchesTheFormulaInF64) {
  for (const Activation kind : kKinds) {
    for (const Layout& at : layouts()) {
      const Matrix<float> x(at, 1, -6, 6), dy(at, 2);
      const Matrix<double> wide_x(x), wide_dy(dy);
      Matrix<float> y(at, 3), dx(at, 4);
      Matrix<double> want_y(wide_x), want_dx(wide_x);
      activation(kind, x.data(), x.ld(), y.data(), y.ld(), at.rows, at.cols);
      activation_grad(kind, x.data(), x.ld(), dy.data(), dy.ld(), dx.data(), dx.ld(), at.rows,
                      at.cols);
      reference::activation(kind, wide_x.data(), wide_x.ld(), want_y.data(), want_y.ld(), at.rows,
                            at.cols);
      reference::activation_grad(kind, wide_x.data(), wide_x.ld(), wide_dy.data(), wide_dy.ld(),
                                 want_dx.data(), want_dx.ld(), at.rows, at.cols);
      EXPECT_LE(difference(y, want_y), 4e-7) << at.rows << " x " << at.cols;
      EXPECT_LE(difference(dx, want_dx), 6e-7) << at.rows << " x " << at.cols;
      EXPECT_TRUE(y.guard_is_intact() && dx.guard_is_intact());
    }
  }
}

// A dense walk over all that is not zero or x itself.
TEST(Activation, IsAccurateEverywhere) {
  for (const Activation kind : kKinds) {
    Matrix<float> x({1, 60001, 0, 0}, 1), y(x), dx(x), ones(x);
    for (int64_t j = 0; j < x.cols(); ++j) {
      x(0, j) = static_cast<float>(j - 30000) * 5e-4f;
      ones(0, j) = 1;
    }
    activation(kind, x.data(), x.ld(), y.data(), y.ld(), 1, x.cols());
    activation_grad(kind, x.data(), x.ld(), ones.data(), ones.ld(), dx.data(), dx.ld(), 1,
                    x.cols());
    for (int64_t j = 0; j < x.cols(); ++j) {
      const double at = static_cast<double>(x(0, j));
      const double value = reference::activate(kind, at), slope = reference::derivative(kind, at);
      ASSERT_NEAR(static_cast<double>(y(0, j)), value, 2.5e-7 * std::max(1.0, std::abs(value)))
          << at;
      ASSERT_NEAR(static_cast<double>(dx(0, j)), slope, 5e-7) << at;
      if (at > -5) {  // small values left of zero are as accurate
        ASSERT_NEAR(static_cast<double>(y(0, j)), value, 2e-6 * std::abs(value)) << at;
      }
    }
  }
}

TEST(Activation, DerivativeAgreesWithFiniteDifferences) {
  for (const Activation kind : kKinds) {
    for (double x = -5.013; x < 5; x += 0.1) {
      const double h = 1e-5;
      const double slope =
          (reference::activate(kind, x + h) - reference::activate(kind, x - h)) / (2 * h);
      EXPECT_NEAR(reference::derivative(kind, x), slope, 1e-9) << x;
    }
  }
}

TEST(Activation, GradientMayOverwriteTheIncomingOne) {
  for (const Activation kind : kKinds) {
    const Layout at = {3, 45, 2, 1};
    const Matrix<float> x(at, 1);
    Matrix<float> dy(at, 2), dx(at, 3), y = x, apart(at, 4);
    activation_grad(kind, x.data(), x.ld(), dy.data(), dy.ld(), dx.data(), dx.ld(), 3, 45);
    activation_grad(kind, x.data(), x.ld(), dy.data(), dy.ld(), dy.data(), dy.ld(), 3, 45);
    EXPECT_TRUE(same_bits(dy, dx));
    activation(kind, x.data(), x.ld(), apart.data(), apart.ld(), 3, 45);
    activation(kind, y.data(), y.ld(), y.data(), y.ld(), 3, 45);
    EXPECT_TRUE(same_bits(y, apart));
  }
}

TEST(Activation, AnElementDoesNotDependOnItsPlace) {
  for (const Activation kind : kKinds) {
    Matrix<float> x({1, 100, 0, 0}, 1), y(x), alone(x);
    activation(kind, x.data(), 100, y.data(), 100, 1, 100);
    for (int64_t j = 0; j < 100; ++j) activation(kind, &x(0, j), 1, &alone(0, j), 1, 1, 1);
    EXPECT_TRUE(same_bits(y, alone));
  }
}

TEST(Activation, KeepsNanAndTheEnds) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), far = 1e30f;
  for (const Activation kind : kKinds) {
    const float x[4] = {nan, far, -1e4f, 0};
    float y[4];
    activation(kind, x, 4, y, 4, 1, 4);
    EXPECT_TRUE(std::isnan(y[0]));
    EXPECT_EQ(y[1], far);
    EXPECT_EQ(y[2], 0);
    EXPECT_EQ(y[3], 0);
  }
}

TEST(Activation, ReluGradientIsZeroAtZero) {
  const float x[3] = {-1, 0, 1}, dy[3] = {5, 5, 5};
  float dx[3];
  activation_grad(Activation::relu, x, 3, dy, 3, dx, 3, 1, 3);
  EXPECT_EQ(dx[0], 0);
  EXPECT_EQ(dx[1], 0);
  EXPECT_EQ(dx[2], 5);
}

}  // namespace
}  // namespace rapt::kernels
