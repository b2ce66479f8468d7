#include "rapt/kernels/softmax.h"

#include "rapt/kernels/reference.h"
#include "tests/kernels/matrices.h"

namespace rapt::kernels {
namespace {

using testing::Layout;
using testing::layouts;
using testing::Matrix;
using testing::same_bits;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Softmax, MatchesTheFormulaInF64) {
  for (const Layout& at : layouts()) {
    const Matrix<float> x(at, 1, -20, 20);
    const Matrix<double> wide(x);
    Matrix<float> y(at, 2);
    Matrix<double> want(wide);
    softmax(x.data(), x.ld(), y.data(), y.ld(), at.rows, at.cols);
    reference::softmax(wide.data(), wide.ld(), want.data(), want.ld(), at.rows, at.cols);
    EXPECT_LE(difference(y, want), 1e-6) << at.rows << " x " << at.cols;
    EXPECT_TRUE(y.guard_is_intact());
    log_softmax(x.data(), x.ld(), y.data(), y.ld(), at.rows, at.cols);
    reference::log_softmax(wide.data(), wide.ld(), want.data(), want.ld(), at.rows, at.cols);
    EXPECT_LE(difference(y, want), 2e-7) << at.rows << " x " << at.cols;
    EXPECT_TRUE(y.guard_is_intact());
  }
}

TEST(Softmax, GradientMatchesTheFormulaInF64) {
  for (const Layout& at : layouts()) {
    Matrix<float> y(at, 1), dy(at, 2), dx(at, 3);
    softmax(y.data(), y.ld(), y.data(), y.ld(), at.rows, at.cols);
    const Matrix<double> wide_y(y), wide_dy(dy);
    Matrix<double> want(wide_y);
    reference::softmax_grad(wide_y.data(), wide_y.ld(), wide_dy.data(), wide_dy.ld(), want.data(),
                            want.ld(), at.rows, at.cols);
    softmax_grad(y.data(), y.ld(), dy.data(), dy.ld(), dx.data(), dx.ld(), at.rows, at.cols);
    // One column: y (dy - dy) is 0, but for the rounding of y dy.
    EXPECT_LE(difference(dx, want), 1e-6) << at.rows << " x " << at.cols;
    EXPECT_TRUE(dx.guard_is_intact());
    softmax_grad(y.data(), y.ld(), dy.data(), dy.ld(), dy.data(), dy.ld(), at.rows, at.cols);
    EXPECT_TRUE(same_bits(dy, dx)) << "in place";
  }
}

TEST(Softmax, GradientAgreesWithFiniteDifferences) {
  const int64_t cols = 9;
  const Matrix<double> x({1, cols, 0, 0}, 1), dy({1, cols, 0, 0}, 2);
  Matrix<double> y(x), dx(x);
  softmax(x.data(), cols, y.data(), cols, 1, cols);
  softmax_grad(y.data(), cols, dy.data(), cols, dx.data(), cols, 1, cols);
  const auto value = [&](int64_t at, double shift) {
    Matrix<double> moved(x);
    moved(0, at) += shift;
    softmax(moved.data(), cols, moved.data(), cols, 1, cols);
    double sum = 0;
    for (int64_t j = 0; j < cols; ++j) sum += moved(0, j) * dy(0, j);
    return sum;
  };
  for (int64_t j = 0; j < cols; ++j) {
    EXPECT_NEAR(dx(0, j), (value(j, 1e-5) - value(j, -1e-5)) / 2e-5, 1e-9);
  }
}

TEST(Softmax, OutputMayBeTheInput) {
  for (const Layout& at : layouts()) {
    const Matrix<float> x(at, 1);
    Matrix<float> y(at, 2), inside = x;
    softmax(x.data(), x.ld(), y.data(), y.ld(), at.rows, at.cols);
    softmax(inside.data(), inside.ld(), inside.data(), inside.ld(), at.rows, at.cols);
    EXPECT_TRUE(same_bits(y, inside) && inside.guard_is_intact());
    inside = x;
    log_softmax(x.data(), x.ld(), y.data(), y.ld(), at.rows, at.cols);
    log_softmax(inside.data(), inside.ld(), inside.data(), inside.ld(), at.rows, at.cols);
    EXPECT_TRUE(same_bits(y, inside) && inside.guard_is_intact());
  }
}

TEST(Softmax, ExponentialsAreAccurateOverTheirWholeRange) {
  // Of a row (0, x) the second weight over the first is exp(x).
  for (double x = -87.3; x < 0; x += 0.0371) {
    const float row[2] = {0, static_cast<float>(x)};
    float y[2];
    softmax(row, 2, y, 2, 1, 2);
    const double want = std::exp(static_cast<double>(row[1]));
    ASSERT_NEAR(static_cast<double>(y[1]) / static_cast<double>(y[0]), want, 3e-7 * want) << x;
  }
}

TEST(Softmax, EqualElementsGetExactlyEqualShares) {
  for (const int64_t cols : {1, 2, 4, 8, 16, 64, 1024}) {
    const std::vector<float> x(static_cast<size_t>(cols), 0.7f);
    std::vector<float> y(x);
    softmax(x.data(), cols, y.data(), cols, 1, cols);
    for (const float share : y) EXPECT_EQ(share, 1 / static_cast<float>(cols));
  }
}

TEST(Softmax, ARowOfMinusInfinityGivesZeros) {
  for (int64_t cols = 1; cols <= 40; ++cols) {
    Matrix<float> x({3, cols, 2, 1}, 1), y(x);
    Matrix<double> wide(x);
    for (int64_t j = 0; j < cols; ++j) x(1, j) = -kInfinity, wide(1, j) = -INFINITY;
    softmax(x.data(), x.ld(), y.data(), y.ld(), 3, cols);
    softmax(wide.data(), wide.ld(), wide.data(), wide.ld(), 3, cols);
    for (int64_t j = 0; j < cols; ++j) {
      EXPECT_EQ(y(1, j), 0);
      EXPECT_EQ(wide(1, j), 0);
      EXPECT_GT(y(0, j), 0);
    }
    log_softmax(x.data(), x.ld(), y.data(), y.ld(), 3, cols);
    for (int64_t j = 0; j < cols; ++j) EXPECT_EQ(y(1, j), -kInfinity);
  }
}

TEST(Softmax, MaskedElementsGetNothingAndChangeNothing) {
  Matrix<float> x({1, 50, 0, 0}, 1), y(x), few({1, 25, 0, 0}, 2);
  for (int64_t j = 0; j < 50; ++j) {
    if (j % 2 == 0) few(0, j / 2) = x(0, j);
    if (j % 2 == 1) x(0, j) = -kInfinity;
  }
  softmax(x.data(), 50, y.data(), 50, 1, 50);
  softmax(few.data(), 25, few.data(), 25, 1, 25);
  for (int64_t j = 0; j < 50; ++j) {
    EXPECT_NEAR(y(0, j), j % 2 == 1 ? 0.0f : few(0, j / 2), 1e-7f);
  }
}

TEST(Softmax, LargeElementsDoNotOverflow) {
  const float x[3] = {3e38f, 3e38f, -3e38f};
  float y[3];
  softmax(x, 3, y, 3, 1, 3);
  EXPECT_EQ(y[0], 0.5f);
  EXPECT_EQ(y[1], 0.5f);
  EXPECT_EQ(y[2], 0);
}

TEST(Softmax, ANanMakesItsRowNanAndNoOther) {
  for (const int64_t at : {0, 7, 20, 36}) {
    Matrix<float> x({3, 37, 0, 0}, 1);
    for (int64_t j = 0; j < 37; ++j) x(1, j) = -kInfinity;
    x(1, at) = std::numeric_limits<float>::quiet_NaN();
    softmax(x.data(), 37, x.data(), 37, 3, 37);
    for (int64_t j = 0; j < 37; ++j) {
      EXPECT_TRUE(std::isnan(x(1, j)));
      EXPECT_TRUE(std::isfinite(x(0, j)) && std::isfinite(x(2, j)));
    }
  }
}

TEST(Softmax, ARowDoesNotDependOnItsMates) {
  const Matrix<float> x({300, 130, 0, 0}, 1);
  Matrix<float> y(x), alone(x);
  softmax(x.data(), 130, y.data(), 130, 300, 130);
  for (int64_t i = 300; i-- > 0;) softmax(&x(i, 0), 130, &alone(i, 0), 130, 1, 130);
  EXPECT_TRUE(same_bits(y, alone));
}

TEST(LogSumExp, IsWhatLogSoftmaxTakesAway) {
  for (const Layout& at : layouts()) {
    if (at.cols == 0) continue;
    const Matrix<float> x(at, 1, -20, 20);
    const Matrix<double> wide(x);
    std::vector<float> sums(static_cast<size_t>(at.rows) + 1, -5.f);
    std::vector<double> want(sums.size(), -5.), wide_sums(want);
    log_sum_exp(x.data(), x.ld(), sums.data(), at.rows, at.cols);
    log_sum_exp(wide.data(), wide.ld(), wide_sums.data(), at.rows, at.cols);
    reference::log_sum_exp(wide.data(), wide.ld(), want.data(), at.rows, at.cols);
    for (size_t r = 0; r < sums.size(); ++r) {
      EXPECT_NEAR(sums[r], want[r], 4e-6) << at.rows << " x " << at.cols;
      EXPECT_NEAR(wide_sums[r], want[r], 1e-13) << at.rows << " x " << at.cols;
    }
  }
  const float hidden[] = {-kInfinity, -kInfinity, -kInfinity};
  float sum = -5;
  log_sum_exp(hidden, 3, &sum, 1, 3);
  EXPECT_EQ(sum, 0);
}

TEST(FindAbove, FindsTheFirstThatIsAboveOrNoNumber) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const int64_t size : {1, 7, 16, 33, 100}) {
    for (int64_t place = 0; place < size; ++place) {
      for (const float value : {1.5f, kInfinity, nan}) {
        std::vector<float> x(static_cast<size_t>(size) + 1, 1.f);
        x[static_cast<size_t>(place)] = x.back() = value;  // and one that is not asked about
        const std::vector<double> wide(x.begin(), x.end());
        for (int64_t begin = 0; begin <= size; ++begin) {
          const int64_t want = begin <= place ? place : size;
          EXPECT_EQ(find_above(x.data(), begin, size, 1.f), want) << size << ' ' << begin;
          EXPECT_EQ(find_above(wide.data(), begin, size, 1.), want) << size << ' ' << begin;
        }
        EXPECT_EQ(find_above(x.data(), 0, place, 1.f), place);
      }
    }
  }
}

TEST(Argmax, FindsTheFirstOfTheLargest) {
  for (const Layout& at : layouts()) {
    if (at.cols == 0) continue;
    Matrix<float> x(at, 1);
    for (int64_t i = 0; i < at.rows; ++i) {
      for (int64_t j = 0; j < at.cols; ++j) x(i, j) = std::round(x(i, j) * 2);  // many are equal
    }
    std::vector<int32_t> found(static_cast<size_t>(at.rows) + 1, -5), want(found);
    argmax(x.data(), x.ld(), found.data(), at.rows, at.cols);
    reference::argmax(x.data(), x.ld(), want.data(), at.rows, at.cols);
    EXPECT_EQ(found, want) << at.rows << " x " << at.cols;
    const Matrix<double> wide(x);
    argmax(wide.data(), wide.ld(), found.data(), at.rows, at.cols);
    EXPECT_EQ(found, want) << at.rows << " x " << at.cols;
  }
}

TEST(Argmax, PassesOverNanAndTakesTheFirstOfARowOfMinusInfinity) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float x[2][3] = {{nan, 1, 2}, {-kInfinity, -kInfinity, -kInfinity}};
  int32_t index[2];
  argmax(&x[0][0], 3, index, 2, 3);
  EXPECT_EQ(index[0], 2);
  EXPECT_EQ(index[1], 0);
}

}  // namespace
}  // namespace rapt::kernels
