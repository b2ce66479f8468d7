#include "rapt/kernels/elementwise.h"
#include "rapt/kernels/reference.h"
#include "tests/kernels/matrices.h"

namespace rapt::kernels {
namespace {

using testing::Layout;
using testing::layouts;
using testing::Matrix;
using testing::row_ids;
using testing::same_bits;

TEST(Dropout, IsTheScalarDefinitionBitForBit) {
  for (const double probability : {0.0, 1e-9, 0.1, 0.5, 0.75, 0.999}) {
    const Dropout spec = {probability, philox_key(1, 2, 3)};
    for (const Layout& at : layouts()) {
      const Matrix<float> x(at, 1);
      Matrix<float> y(at, 2), want(at, 3);
      const auto ids = row_ids(at.rows);
      dropout(spec, ids.data(), x.data(), x.ld(), y.data(), y.ld(), at.rows, at.cols);
      for (int64_t i = 0; i < at.rows; ++i) {
        for (int64_t j = 0; j < at.cols; ++j) {
          const RowId& id = ids[static_cast<size_t>(i)];
          const uint32_t word =
              philox_element(spec.key, id.sample, id.position, static_cast<uint32_t>(j));
          const float factor = static_cast<float>(1 / (1 - probability));
          want(i, j) = word < dropout_threshold(probability) ? 0.0f : x(i, j) * factor;
        }
      }
      EXPECT_TRUE(same_bits(y, want) && y.guard_is_intact()) << at.rows << " x " << at.cols;
      y = x;
      dropout(spec, ids.data(), y.data(), y.ld(), y.data(), y.ld(), at.rows, at.cols);
      EXPECT_TRUE(same_bits(y, want) && y.guard_is_intact()) << "in place";
    }
  }
}

TEST(Dropout, DropsTheShareThatWasAskedFor) {
  const int64_t rows = 200, cols = 500;
  const Dropout spec = {0.3, philox_key(7, 0, 0)};
  Matrix<float> x({rows, cols, 0, 0}, 1, 1, 2);
  const auto ids = row_ids(rows);
  dropout(spec, ids.data(), x.data(), cols, x.data(), cols, rows, cols);
  const auto dropped = std::count(x.data(), x.data() + rows * cols, 0.0f);
  EXPECT_NEAR(static_cast<double>(dropped) / (rows * cols), 0.3, 0.007);  // 5 standard deviations
}

TEST(Dropout, ARowDependsOnItsIdAlone) {
  const int64_t rows = 40, cols = 77;
  const Dropout spec = {0.4, philox_key(7, 1, 2)};
  const Matrix<float> x({rows, cols, 0, 0}, 1);
  Matrix<float> y({rows, cols, 0, 0}, 2), alone({rows, cols, 0, 0}, 3);
  const auto ids = row_ids(rows);
  dropout(spec, ids.data(), x.data(), cols, y.data(), cols, rows, cols);
  for (int64_t i = rows; i-- > 0;) {
    dropout(spec, &ids[static_cast<size_t>(i)], &x(i, 0), cols, &alone(i, 0), cols, 1, cols);
  }
  EXPECT_TRUE(same_bits(y, alone));
}

TEST(Dropout, ProbabilityZeroNeedsNoIds) {
  const Matrix<float> x({4, 33, 1, 1}, 1);
  Matrix<float> y({4, 33, 1, 1}, 2);
  dropout({}, nullptr, x.data(), x.ld(), y.data(), y.ld(), 4, 33);
  EXPECT_TRUE(same_bits(x, y) && y.guard_is_intact());
}

TEST(Dropout, DoubleDropsTheSameElements) {
  const Dropout spec = {0.5, philox_key(7, 1, 2)};
  const Matrix<double> x({5, 70, 0, 0}, 1);
  Matrix<double> y(x);
  Matrix<float> narrow(x);
  const auto ids = row_ids(5);
  dropout(spec, ids.data(), x.data(), 70, y.data(), 70, 5, 70);
  dropout(spec, ids.data(), narrow.data(), 70, narrow.data(), 70, 5, 70);
  EXPECT_LE(difference(narrow, y), 1e-7);
  EXPECT_GT(std::count(y.data(), y.data() + 350, 0.0), 100);
}

}  // namespace
}  // namespace rapt::kernels
