#include "rapt/kernels/elementwise.h"

#include "rapt/kernels/reference.h"
#include "tests/kernels/matrices.h"

namespace rapt::kernels {
namespace {

using testing::Layout;
using testing::layouts;
using testing::Matrix;
using testing::same_bits;

TEST(Elementwise, SumAndProductAreExact) {
  for (const Layout& at : layouts()) {
    const Matrix<float> a(at, 1), b(at, 2);
    Matrix<float> y(at, 3), want(at, 4);
    add(a.data(), a.ld(), b.data(), b.ld(), y.data(), y.ld(), at.rows, at.cols);
    reference::add(a.data(), a.ld(), b.data(), b.ld(), want.data(), want.ld(), at.rows, at.cols);
    EXPECT_TRUE(same_bits(y, want) && y.guard_is_intact()) << at.rows << " x " << at.cols;
    multiply(a.data(), a.ld(), b.data(), b.ld(), y.data(), y.ld(), at.rows, at.cols);
    reference::multiply(a.data(), a.ld(), b.data(), b.ld(), want.data(), want.ld(), at.rows,
                        at.cols);
    EXPECT_TRUE(same_bits(y, want) && y.guard_is_intact()) << at.rows << " x " << at.cols;
  }
}

TEST(Elementwise, OperandsMayHaveLayoutsOfTheirOwn) {
  const int64_t rows = 7, cols = 37;
  const Matrix<float> a({rows, cols, 2, 1}, 1), b({rows, cols, 9, 3}, 2);
  Matrix<float> y({rows, cols, 0, 0}, 3), want({rows, cols, 0, 0}, 4);
  add(a.data(), a.ld(), b.data(), b.ld(), y.data(), y.ld(), rows, cols);
  reference::add(a.data(), a.ld(), b.data(), b.ld(), want.data(), want.ld(), rows, cols);
  EXPECT_TRUE(same_bits(y, want) && y.guard_is_intact());
}

TEST(Elementwise, OutputMayBeAnInput) {
  for (const Layout& at : layouts()) {
    const Matrix<float> a(at, 1), b(at, 2);
    Matrix<float> y = a, want(at, 4);
    add(y.data(), y.ld(), b.data(), b.ld(), y.data(), y.ld(), at.rows, at.cols);
    reference::add(a.data(), a.ld(), b.data(), b.ld(), want.data(), want.ld(), at.rows, at.cols);
    EXPECT_TRUE(same_bits(y, want)) << at.rows << " x " << at.cols;
    scale(y.data(), y.ld(), 0.5, y.data(), y.ld(), at.rows, at.cols, false);
    reference::scale(want.data(), want.ld(), 0.5, want.data(), want.ld(), at.rows, at.cols, false);
    EXPECT_TRUE(same_bits(y, want) && y.guard_is_intact()) << at.rows << " x " << at.cols;
  }
}

TEST(Elementwise, ScaleWritesOrAdds) {
  for (const Layout& at : layouts()) {
    const Matrix<float> x(at, 1);
    const Matrix<double> wide(x);
    for (const bool accumulate : {false, true}) {
      Matrix<float> y(at, 3);
      Matrix<double> want(y);
      scale(x.data(), x.ld(), 1.7, y.data(), y.ld(), at.rows, at.cols, accumulate);
      reference::scale(wide.data(), wide.ld(), 1.7, want.data(), want.ld(), at.rows, at.cols,
                       accumulate);
      EXPECT_LE(difference(y, want), 2e-7) << at.rows << " x " << at.cols;
      EXPECT_TRUE(y.guard_is_intact());
    }
  }
}

TEST(Elementwise, FillReachesEveryElement) {
  for (const Layout& at : layouts()) {
    Matrix<float> y(at, 3), want(at, 4);
    fill(y.data(), y.ld(), 0.25, at.rows, at.cols);
    reference::fill(want.data(), want.ld(), 0.25, at.rows, at.cols);
    EXPECT_TRUE(same_bits(y, want) && y.guard_is_intact()) << at.rows << " x " << at.cols;
  }
}

TEST(Elementwise, DoubleOverloadsGiveTheSameNumbers) {
  for (const Layout& at : {Layout{3, 17, 2, 1}, Layout{300, 130, 0, 0}}) {
    const Matrix<double> a(at, 1), b(at, 2);
    Matrix<double> y(at, 3), want(at, 4);
    add(a.data(), a.ld(), b.data(), b.ld(), y.data(), y.ld(), at.rows, at.cols);
    multiply(y.data(), y.ld(), b.data(), b.ld(), y.data(), y.ld(), at.rows, at.cols);
    scale(a.data(), a.ld(), 3, y.data(), y.ld(), at.rows, at.cols, true);
    for (int64_t i = 0; i < at.rows; ++i) {
      for (int64_t j = 0; j < at.cols; ++j) {
        want(i, j) = (a(i, j) + b(i, j)) * b(i, j) + 3 * a(i, j);
      }
    }
    EXPECT_LE(difference(y, want), 1e-15);
    EXPECT_TRUE(y.guard_is_intact());
    fill(y.data(), y.ld(), 1, at.rows, at.cols);
    EXPECT_EQ(sum(y.data(), at.cols), static_cast<double>(at.cols));
  }
}

// What sum() promises: 32 totals in turn within blocks of 16,384, which pairs of halves then join.
double sum_in_order(const std::vector<float>& x, bool squares) {
  double total = 0;
  for (size_t begin = 0; begin < x.size(); begin += 16384) {
    double totals[32] = {};
    for (size_t i = begin; i < std::min(x.size(), begin + 16384); ++i) {
      totals[i % 32] += static_cast<double>(x[i]) * (squares ? static_cast<double>(x[i]) : 1);
    }
    for (size_t width = 16; width > 0; width /= 2) {
      for (size_t i = 0; i < width; ++i) totals[i] += totals[i + width];
    }
    total += totals[0];
  }
  return total;
}

TEST(Elementwise, SumsHaveTheSameBitsOnEveryInstructionSet) {
  Rng rng(1);
  std::vector<float> x;
  for (const size_t n : {0, 1, 2, 31, 32, 33, 63, 70, 1000, 16384, 16385, 100003}) {
    while (x.size() < n) x.push_back(static_cast<float>(rng.normal()));
    const int64_t count = static_cast<int64_t>(n);
    EXPECT_EQ(sum(x.data(), count), sum_in_order(x, false)) << n;
    EXPECT_EQ(sum_of_squares(x.data(), count), sum_in_order(x, true)) << n;
    const std::vector<double> wide(x.begin(), x.end());
    EXPECT_NEAR(sum(wide.data(), count), sum(x.data(), count), 1e-9);
    EXPECT_NEAR(sum_of_squares(wide.data(), count), sum_of_squares(x.data(), count), 1e-8);
  }
}

TEST(Elementwise, SumOfALongSmallTailKeepsItsAccuracy) {
  std::vector<float> x(200000, 1e-4f);
  x[0] = 1e8f;
  EXPECT_NEAR(sum(x.data(), 200000), 1e8 + 199999 * static_cast<double>(1e-4f), 1e-5);
}

TEST(Convert, ToBf16RoundsToNearestEvenAndKeepsNan) {
  std::vector<float> x;
  for (uint32_t upper = 0; upper < 0x10000; upper += 7) {
    for (const uint32_t lower : {0u, 1u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu}) {
      x.push_back(std::bit_cast<float>(upper << 16 | lower));
    }
  }
  std::vector<bf16> y(x.size());
  convert(x.data(), y.data(), static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(y[i].bits, bf16(x[i]).bits) << std::hexfloat << x[i];
    EXPECT_EQ(std::isnan(x[i]), std::isnan(static_cast<float>(y[i])));
  }
}

TEST(Convert, AllLengthsThereAndBack) {
  for (int64_t n = 0; n <= 70; ++n) {
    const Matrix<float> x({1, n, 0, 1}, 5);
    Matrix<double> wide({1, n, 0, 0}, 6);
    Matrix<float> back({1, n, 0, 3}, 7), narrowed({1, n, 0, 1}, 8);
    std::vector<bf16> narrow(static_cast<size_t>(n + 1), bf16(7.0f));
    convert(x.data(), wide.data(), n);
    convert(wide.data(), back.data(), n);
    EXPECT_TRUE(same_bits(x, back) && back.guard_is_intact()) << n;
    convert(x.data(), narrow.data(), n);
    EXPECT_EQ(narrow.back().bits, bf16(7.0f).bits);
    convert(narrow.data(), narrowed.data(), n);
    EXPECT_TRUE(narrowed.guard_is_intact());
    for (int64_t j = 0; j < n; ++j) EXPECT_EQ(narrowed(0, j), static_cast<float>(bf16(x(0, j))));
  }
}

}  // namespace
}  // namespace rapt::kernels
