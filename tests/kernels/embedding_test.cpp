#include "rapt/kernels/embedding.h"

#include "rapt/kernels/reference.h"
#include "tests/kernels/matrices.h"

namespace rapt::kernels {
namespace {

using testing::Layout;
using testing::layouts;
using testing::Matrix;
using testing::row_ids;
using testing::same_bits;

constexpr int64_t kV = 23;

// Ids of which some are frequent, and some never come.
std::vector<int32_t> make_ids(int64_t count) {
  Rng rng(3);
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < count; ++i) {
    ids.push_back(static_cast<int32_t>(i % 2 == 0 ? 7 : rng.below(kV - 3)));
  }
  return ids;
}

template <class T>
EmbeddingArgs<T> make_args(const Matrix<T>& table, const Matrix<T>* positions,
                           const std::vector<int32_t>& ids, const std::vector<RowId>& rows,
                           double probability) {
  EmbeddingArgs<T> a;
  a.table = table.data(), a.ldt = table.ld();
  if (positions != nullptr) a.positions = positions->data(), a.ldp = positions->ld();
  a.ids = ids.data(), a.rows = rows.data();
  a.factor = 1.7;
  a.dropout = {probability, philox_key(1, 2, 3)};
  return a;
}

TEST(Embedding, MatchesTheFormulaInF64) {
  for (const Layout& at : layouts()) {
    const Matrix<float> table({kV, at.cols, at.gap, at.offset}, 1),
        positions({3, at.cols, at.gap, at.offset}, 2);
    const Matrix<double> wide_table(table), wide_positions(positions);
    const auto ids = make_ids(at.rows);
    const auto rows = row_ids(at.rows);
    for (const double probability : {0.0, 0.25}) {
      for (const bool with_positions : {false, true}) {
        Matrix<float> y(at, 3);
        Matrix<double> want(y);
        embedding(make_args(table, with_positions ? &positions : nullptr, ids, rows, probability),
                  y.data(), y.ld(), at.rows, at.cols);
        reference::embedding(make_args(wide_table, with_positions ? &wide_positions : nullptr, ids,
                                       rows, probability),
                             want.data(), want.ld(), at.rows, at.cols);
        EXPECT_LE(difference(y, want), 3e-7) << at.rows << " x " << at.cols;
        EXPECT_TRUE(y.guard_is_intact());
      }
    }
  }
}

TEST(Embedding, WithoutPositionsAndDropoutNeedsNoRows) {
  const Matrix<float> table({kV, 10, 0, 0}, 1);
  EmbeddingArgs<float> a;
  const int32_t ids[2] = {5, 0};
  a.table = table.data(), a.ldt = 10, a.ids = ids;
  Matrix<float> y({2, 10, 0, 0}, 2);
  embedding(a, y.data(), 10, 2, 10);
  for (int64_t j = 0; j < 10; ++j) {
    EXPECT_EQ(y(0, j), table(5, j));
    EXPECT_EQ(y(1, j), table(0, j));
  }
}

TEST(Embedding, ARowDoesNotDependOnItsMates) {
  const Matrix<float> table({kV, 130, 0, 0}, 1), positions({3, 130, 0, 0}, 2);
  const auto ids = make_ids(300);
  const auto rows = row_ids(300);
  Matrix<float> y({300, 130, 0, 0}, 3), alone(y);
  auto a = make_args(table, &positions, ids, rows, 0.2);
  embedding(a, y.data(), 130, 300, 130);
  for (int64_t i = 0; i < 300; ++i, ++a.ids, ++a.rows) embedding(a, &alone(i, 0), 130, 1, 130);
  EXPECT_TRUE(same_bits(y, alone));
}

TEST(EmbeddingGrad, MatchesTheFormulaInF64) {
  for (const Layout& at : layouts()) {
    const auto ids = make_ids(at.rows);
    const auto rows = row_ids(at.rows);
    const Matrix<float> dy(at, 2);
    const Matrix<double> wide_dy(dy);
    for (const double probability : {0.0, 0.25}) {
      for (const bool first : {false, true}) {
        // The gradient is contiguous, but need not be aligned.
        Matrix<float> d({kV, at.cols, 0, at.offset}, 5);
        Matrix<double> want(d);
        embedding_grad(make_args(d, static_cast<Matrix<float>*>(nullptr), ids, rows, probability),
                       dy.data(), dy.ld(), d.data(), kV, first, at.rows, at.cols);
        reference::embedding_grad(
            make_args(want, static_cast<Matrix<double>*>(nullptr), ids, rows, probability),
            wide_dy.data(), wide_dy.ld(), want.data(), kV, first, at.rows, at.cols);
        EXPECT_LE(difference(d, want), 1e-6) << at.rows << " x " << at.cols;
        EXPECT_TRUE(d.guard_is_intact()) << at.rows << " x " << at.cols;
      }
    }
  }
}

TEST(EmbeddingGrad, SumsRowsOfOneIdInTheirOrder) {
  // In any other order the small numbers would not vanish beside the large one.
  const int32_t ids[4] = {2, 2, 2, 2};
  const float dy[4] = {1, 1e8f, -1e8f, 3};
  EmbeddingArgs<float> a;
  a.ids = ids;
  float d[4];
  embedding_grad(a, dy, 1, d, 4, true, 4, 1);
  EXPECT_EQ(d[2], 3);
  EXPECT_EQ(d[0], 0);
  EXPECT_EQ(d[3], 0);
}

// From some number of rows on an id is summed by all threads together: none falls between.
TEST(EmbeddingGrad, AnIdMayHaveAnyNumberOfRows) {
  const int64_t cols = 150;
  for (int64_t count = 60; count <= 70; ++count) {
    const std::vector<int32_t> ids(static_cast<size_t>(count), 1);
    EmbeddingArgs<float> a;
    a.ids = ids.data();
    const std::vector<float> dy(static_cast<size_t>(count * cols), 0.5f);
    std::vector<float> d(static_cast<size_t>(3 * cols), 7.0f);
    embedding_grad(a, dy.data(), cols, d.data(), 3, true, count, cols);
    for (int64_t j = 0; j < 3 * cols; ++j) {
      const bool named = j / cols == 1;
      ASSERT_EQ(d[static_cast<size_t>(j)], named ? 0.5f * static_cast<float>(count) : 0.0f);
    }
  }
}

TEST(EmbeddingGrad, NoRowsZeroTheTableOrLeaveIt) {
  EmbeddingArgs<float> a;
  float d[6] = {1, 2, 3, 4, 5, 6};
  embedding_grad(a, static_cast<const float*>(nullptr), 3, d, 2, false, 0, 3);
  EXPECT_EQ(d[5], 6);
  embedding_grad(a, static_cast<const float*>(nullptr), 3, d, 2, true, 0, 3);
  for (const float value : d) EXPECT_EQ(value, 0);
}

TEST(EmbeddingGrad, AgreesWithFiniteDifferences) {
  const int64_t count = 9, cols = 5;
  const Matrix<double> table({kV, cols, 0, 0}, 1), dy({count, cols, 0, 0}, 2);
  const auto ids = make_ids(count);
  const auto rows = row_ids(count);
  Matrix<double> d(table);
  embedding_grad(make_args(table, static_cast<Matrix<double>*>(nullptr), ids, rows, 0.3), dy.data(),
                 cols, d.data(), kV, true, count, cols);
  const auto value = [&](int64_t id, int64_t column, double shift) {
    Matrix<double> moved = table, y(dy);
    moved(id, column) += shift;
    embedding(make_args(moved, static_cast<Matrix<double>*>(nullptr), ids, rows, 0.3), y.data(),
              cols, count, cols);
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t j = 0; j < cols; ++j) sum += y(i, j) * dy(i, j);
    }
    return sum;
  };
  for (int64_t id = 0; id < kV; ++id) {
    for (int64_t j = 0; j < cols; ++j) {
      EXPECT_NEAR(d(id, j), (value(id, j, 1e-5) - value(id, j, -1e-5)) / 2e-5, 1e-8);
    }
  }
}

}  // namespace
}  // namespace rapt::kernels
