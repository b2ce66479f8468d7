// The kernels that go row by row: their bits do not depend on the number of threads.
#include "rapt/kernels/reference.h"
#include "rapt/kernels/softmax.h"
#include "tests/kernels/matrices.h"

namespace rapt::kernels {
namespace {

using testing::Layout;
using testing::Matrix;
using testing::row_ids;
using testing::same_for_any_threads;

constexpr int64_t kRows = 500, kCols = 132;
constexpr Layout kAt = {kRows, kCols, 0, 0};

std::vector<float> contents(const Matrix<float>& m) {
  return {m.data(), m.data() + m.rows() * m.ld()};
}

const Dropout kSpec = {0.3, philox_key(1, 2, 3)};

TEST(RowThreads, Elementwise) {
  EXPECT_TRUE(same_for_any_threads([] {
    Matrix<float> a(kAt, 1), b({kRows, kCols, 4, 1}, 2);
    add(a.data(), a.ld(), b.data(), b.ld(), a.data(), a.ld(), kRows, kCols);
    activation(Activation::gelu, a.data(), kCols, a.data(), kCols, kRows, kCols);
    dropout(kSpec, row_ids(kRows).data(), a.data(), kCols, a.data(), kCols, kRows, kCols);
    auto result = contents(a);
    result.push_back(static_cast<float>(sum(a.data(), kRows * kCols)));
    return result;
  }));
}

TEST(RowThreads, Sums) {
  EXPECT_TRUE(same_for_any_threads([] {
    const Matrix<float> a({1, 500001, 0, 0}, 1);
    const Matrix<double> wide(a);
    return std::vector<double>{sum(a.data(), 500001), sum_of_squares(a.data(), 500001),
                               sum(wide.data(), 500001), sum_of_squares(wide.data(), 500001)};
  }));
}

TEST(RowThreads, SoftmaxAndCrossEntropy) {
  EXPECT_TRUE(same_for_any_threads([] {
    Matrix<float> a(kAt, 1);
    softmax(a.data(), kCols, a.data(), kCols, kRows, kCols);
    std::vector<int32_t> targets(kRows, 5);
    std::vector<float> losses(kRows);
    cross_entropy(a.data(), kCols, targets.data(), -1, 0.1, losses.data(), a.data(), kCols, kRows,
                  kCols);
    argmax(a.data(), kCols, targets.data(), kRows, kCols);
    auto result = contents(a);
    result.insert(result.end(), losses.begin(), losses.end());
    result.insert(result.end(), targets.begin(), targets.end());
    return result;
  }));
}

TEST(RowThreads, LayerNormWithItsGradients) {
  EXPECT_TRUE(same_for_any_threads([] {
    const auto ids = row_ids(kRows);
    Matrix<float> x(kAt, 1), residual(kAt, 2), y(kAt, 3), z(kAt, 4), gain({1, kCols, 0, 0}, 5),
        d_gain({1, kCols, 0, 0}, 6), d_shift({1, kCols, 0, 0}, 7), mean({1, kRows, 0, 0}, 8),
        rstd({1, kRows, 0, 0}, 9);
    LayerNormArgs<float> a;
    a.x = x.data(), a.residual = residual.data(), a.gain = gain.data();
    a.ldx = a.ldr = a.ldy = a.ldz = kCols;
    a.dropout = kSpec, a.ids = ids.data();
    a.y = y.data(), a.z = z.data(), a.mean = mean.data(), a.rstd = rstd.data();
    layer_norm(a, kRows, kCols);
    LayerNormGrads<float> g;
    g.z = z.data(), g.mean = mean.data(), g.rstd = rstd.data(), g.gain = gain.data();
    g.dy = y.data(), g.ldz = g.lddy = g.lddx = g.lddr = kCols;
    g.dropout = kSpec, g.ids = ids.data();
    g.dx = x.data(), g.d_residual = residual.data();
    g.d_gain = d_gain.data(), g.d_shift = d_shift.data();
    layer_norm_grad(g, kRows, kCols);
    std::vector<float> result;
    for (const auto* m : {&x, &residual, &y, &d_gain, &d_shift}) {
      const auto part = contents(*m);
      result.insert(result.end(), part.begin(), part.end());
    }
    return result;
  }));
}

TEST(RowThreads, EmbeddingGradient) {
  for (const bool first : {false, true}) {
    EXPECT_TRUE(same_for_any_threads([first] {
      const auto rows = row_ids(kRows);
      const Matrix<float> dy(kAt, 1);
      Matrix<float> d({kRows, kCols, 0, 0}, 2);
      std::vector<int32_t> ids;
      for (int64_t i = 0; i < kRows; ++i) {
        ids.push_back(static_cast<int32_t>(i % 2 == 0 ? 3 : i % 100));  // one id is frequent
      }
      EmbeddingArgs<float> a;
      a.ids = ids.data(), a.rows = rows.data(), a.dropout = kSpec;
      embedding_grad(a, dy.data(), kCols, d.data(), kRows, first, kRows, kCols);
      Matrix<float> y(kAt, 3);
      a.table = d.data(), a.ldt = kCols;
      embedding(a, y.data(), kCols, kRows, kCols);
      auto result = contents(d);
      const auto forward = contents(y);
      result.insert(result.end(), forward.begin(), forward.end());
      return result;
    }));
  }
}

TEST(RowThreads, Optimizers) {
  EXPECT_TRUE(same_for_any_threads([] {
    const Layout at = {1, 100001, 0, 0};
    const Matrix<float> g(at, 2);
    Matrix<float> p(at, 1), m(at, 3), v(at, 4, 0, 1);
    std::vector<bf16> twin(100001);
    adam({.rate = 0.1}, p.data(), g.data(), m.data(), v.data(), twin.data(), 100001);
    sgd({.rate = 0.1, .momentum = 0.9}, p.data(), g.data(), m.data(), nullptr, 100001);
    auto result = contents(p);
    for (const bf16 value : twin) result.push_back(static_cast<float>(value));
    return result;
  }));
}

}  // namespace
}  // namespace rapt::kernels
