// What f32 products make of their numbers, whichever unit multiplies them: as exact as
// multiply-adds in f32, over many blocks, from the smallest to infinity.
#include <cmath>
#include <limits>
#include <vector>

#include "rapt/base/random.h"
#include "rapt/kernels/matmul.h"
#include "tests/testing/testing.h"

namespace rapt::kernels {
namespace {

using Numbers = std::vector<float>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// More rows than a chunk, more inputs than a block of them, and ends that fill no panel.
constexpr int64_t kM = 300, kN = 70, kK = 1500;

size_t at(int64_t row, int64_t col, int64_t cols) { return static_cast<size_t>(row * cols + col); }

Numbers normal(int64_t rows, int64_t cols, uint64_t seed, double scale = 1) {
  Rng rng(seed);
  Numbers x(at(rows, 0, cols));
  for (float& value : x) value = static_cast<float>(scale * rng.normal());
  return x;
}

// One product c (rows, cols) = a b as its three callers see it.
struct Product {
  const char* name;
  int64_t rows, cols, inner;
  Numbers (*run)(const Numbers& a, const Numbers& b);  // a (rows, inner), b (inner, cols)
};

Numbers transposed(const Numbers& x, int64_t rows, int64_t cols) {
  Numbers y(x.size());
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) y[at(c, r, rows)] = x[at(r, c, cols)];
  }
  return y;
}

Numbers forward(const Numbers& a, const Numbers& b) {
  const Numbers w = transposed(b, kK, kN);
  Numbers y(at(kM, 0, kN));
  linear(a.data(), kK, w.data(), kK, nullptr, y.data(), kN, kM, kN, kK, RowPolicy::fast);
  return y;
}
Numbers forward_independent(const Numbers& a, const Numbers& b) {
  const Numbers w = transposed(b, kK, kN);
  Numbers y(at(kM, 0, kN));
  linear(a.data(), kK, w.data(), kK, nullptr, y.data(), kN, kM, kN, kK, RowPolicy::independent);
  return y;
}
Numbers backward_x(const Numbers& a, const Numbers& b) {  // N and K have changed places
  Numbers dx(at(kM, 0, kN));
  linear_dx(a.data(), kK, b.data(), kN, dx.data(), kN, kM, kK, kN, false);
  return dx;
}
Numbers backward_w(const Numbers& a, const Numbers& b) {
  const Numbers dy = transposed(a, kM, kK);
  Numbers dw(at(kM, 0, kN));
  linear_dw(dy.data(), kM, b.data(), kN, dw.data(), kN, kK, kM, kN, false);
  return dw;
}

constexpr Product kProducts[] = {{"linear", kM, kN, kK, forward},
                                 {"linear, independent", kM, kN, kK, forward_independent},
                                 {"linear_dx", kM, kN, kK, backward_x},
                                 {"linear_dw", kM, kN, kK, backward_w}};

// The largest error over the elements, each as a share of the sum of its products' magnitudes.
double worst_error(const Product& p, const Numbers& a, const Numbers& b, const Numbers& c) {
  double worst = 0;
  for (int64_t row = 0; row < p.rows; ++row) {
    for (int64_t col = 0; col < p.cols; ++col) {
      double sum = 0, size = 0;
      for (int64_t k = 0; k < p.inner; ++k) {
        const double product = static_cast<double>(a[at(row, k, p.inner)]) * b[at(k, col, p.cols)];
        sum += product;
        size += std::abs(product);
      }
      worst = std::max(worst, std::abs(c[at(row, col, p.cols)] - sum) / size);
    }
  }
  return worst;
}

TEST(F32Products, AreAsExactAsMultiplyAddsInF32) {
  const Numbers a = normal(kM, kK, 1), b = normal(kK, kN, 2);
  Numbers chain(at(kM, 0, kN));
  for (int64_t row = 0; row < kM; ++row) {
    for (int64_t col = 0; col < kN; ++col) {
      float sum = 0;
      for (int64_t k = 0; k < kK; ++k) sum = std::fma(a[at(row, k, kK)], b[at(k, col, kN)], sum);
      chain[at(row, col, kN)] = sum;
    }
  }
  for (const Product& p : kProducts) {
    EXPECT_LE(worst_error(p, a, b, p.run(a, b)), worst_error(p, a, b, chain)) << p.name;
  }
}

// Sixteen bits hold none of these: every bit of both numbers must count.
TEST(F32Products, KeepEveryBitOfTheirNumbers) {
  Numbers a(at(kM, 0, kK), 0), b(at(kK, 0, kN), 0);
  const float x = 1 + std::ldexp(1.0f, -23), y = 1 - std::ldexp(1.0f, -24);
  for (int64_t row = 0; row < kM; ++row) a[at(row, 7, kK)] = x;
  for (int64_t col = 0; col < kN; ++col) b[at(7, col, kN)] = col % 2 == 0 ? 1.0f : y;
  for (const Product& p : kProducts) {
    const Numbers c = p.run(a, b);
    EXPECT_EQ(c[at(200, 10, kN)], x) << p.name;
    EXPECT_EQ(c[at(200, 11, kN)], 1.0f) << p.name;  // x y is 1 + 2^-24 less a 47th bit
  }
}

TEST(F32Products, AreExactForSmallAndLargeNumbers) {
  for (const double scale : {1e-18, 1e18}) {
    const Numbers a = normal(kM, kK, 1, scale), b = normal(kK, kN, 2, 1 / scale);
    for (const Product& p : kProducts) {
      EXPECT_LE(worst_error(p, a, b, p.run(a, b)), 1e-6) << p.name << " at " << scale;
    }
  }
}

TEST(F32Products, ReachTheLargestNumber) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  Numbers a(at(kM, 0, kK), 0), b(at(kK, 0, kN), 0);
  a[at(290, 1490, kK)] = kLargest;
  b[at(1490, 60, kN)] = 0.75f;
  for (const Product& p : kProducts) {
    const Numbers c = p.run(a, b);
    EXPECT_EQ(c[at(290, 60, kN)], 0.75f * kLargest) << p.name;
    EXPECT_EQ(c[at(290, 61, kN)], 0) << p.name;
  }
}

TEST(F32Products, CarryInfinityAndNaNToWhatTheyTouchAlone) {
  Numbers a = normal(kM, kK, 1), b = normal(kK, kN, 2);
  for (const Product& p : kProducts) {
    const Numbers finite = p.run(a, b);
    Numbers infinite = a, undefined = b;
    infinite[at(290, 1490, kK)] = -kInfinity;
    undefined[at(3, 65, kN)] = std::numeric_limits<float>::quiet_NaN();
    const Numbers c = p.run(infinite, b), d = p.run(a, undefined);
    for (int64_t row = 0; row < kM; ++row) {
      for (int64_t col = 0; col < kN; ++col) {
        const size_t i = at(row, col, kN);
        if (row == 290) {
          EXPECT_EQ(c[i], b[at(1490, col, kN)] < 0 ? kInfinity : -kInfinity) << p.name;
        } else {
          EXPECT_NEAR(c[i], finite[i], 1e-3) << p.name;
        }
        if (col == 65) {
          EXPECT_TRUE(std::isnan(d[i])) << p.name;
        } else {
          EXPECT_NEAR(d[i], finite[i], 1e-3) << p.name;
        }
      }
    }
  }
}

}  // namespace
}  // namespace rapt::kernels
