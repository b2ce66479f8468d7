#include "rapt/kernels/layer_norm.h"

#include <functional>

#include "rapt/kernels/reference.h"
#include "tests/kernels/matrices.h"

namespace rapt::kernels {
namespace {

using testing::Layout;
using testing::layouts;
using testing::Matrix;
using testing::row_ids;
using testing::same_bits;

// All that a layer norm reads and writes, of one layout.
template <class T>
struct Buffers {
  Matrix<T> x, residual, gain, shift, y, z, mean, rstd;

  explicit Buffers(const Layout& at)
      : x(at, 1),
        residual(at, 2),
        gain({1, at.cols, 0, at.offset}, 3, 0.5, 2),
        shift({1, at.cols, 0, at.offset}, 4),
        y(at, 5),
        z(at, 6),
        mean({1, at.rows, 0, 0}, 7),
        rstd({1, at.rows, 0, 0}, 8) {}
  template <class From>
  explicit Buffers(const Buffers<From>& o)
      : x(o.x),
        residual(o.residual),
        gain(o.gain),
        shift(o.shift),
        y(o.y),
        z(o.z),
        mean(o.mean),
        rstd(o.rstd) {}

  LayerNormArgs<T> args() {
    LayerNormArgs<T> a;
    a.x = x.data(), a.ldx = x.ld();
    a.residual = residual.data(), a.ldr = residual.ld();
    a.gain = gain.data(), a.shift = shift.data();
    a.y = y.data(), a.ldy = y.ld();
    a.z = z.data(), a.ldz = z.ld();
    a.mean = mean.data(), a.rstd = rstd.data();
    return a;
  }
};

TEST(LayerNorm, MatchesTheFormulaInF64) {
  for (const Layout& at : layouts()) {
    if (at.cols == 0) continue;
    const auto ids = row_ids(at.rows);
    for (const double probability : {0.0, 0.25}) {
      for (const bool residual : {false, true}) {
        Buffers<float> f(at);
        Buffers<double> w(f);
        auto a = f.args();
        auto b = w.args();
        a.dropout = b.dropout = {probability, philox_key(1, 2, 3)};
        a.ids = b.ids = ids.data();
        if (!residual) a.residual = nullptr, b.residual = nullptr;
        layer_norm(a, at.rows, at.cols);
        reference::layer_norm(b, at.rows, at.cols);
        // Of one column, z minus its mean is 0.
        EXPECT_LE(difference(f.y, w.y), 1e-6) << at.rows << " x " << at.cols;
        EXPECT_LE(difference(f.z, w.z), 2e-7) << at.rows << " x " << at.cols;
        for (int64_t i = 0; i < at.rows; ++i) EXPECT_NEAR(f.mean(0, i), w.mean(0, i), 4e-7);
        EXPECT_LE(difference(f.rstd, w.rstd), 1e-6) << at.rows << " x " << at.cols;
        EXPECT_TRUE(f.y.guard_is_intact() && f.z.guard_is_intact() && f.mean.guard_is_intact());
      }
    }
  }
}

TEST(LayerNorm, RowsFarFromZeroKeepTheirAccuracy) {
  for (const int64_t cols : {3, 64, 513, 2048}) {
    Buffers<float> f(Layout{4, cols, 0, 0});
    for (int64_t i = 0; i < 4; ++i) {
      for (int64_t j = 0; j < cols; ++j) f.x(i, j) += 3000 * static_cast<float>(i);
    }
    Buffers<double> w(f);
    auto a = f.args();
    auto b = w.args();
    a.residual = nullptr, b.residual = nullptr;
    layer_norm(a, 4, cols);
    reference::layer_norm(b, 4, cols);
    EXPECT_LE(difference(f.y, w.y), 1e-6) << cols;
    EXPECT_LE(difference(f.rstd, w.rstd), 1e-6) << cols;
  }
}

TEST(LayerNorm, AConstantRowGivesTheShift) {
  Buffers<float> f(Layout{2, 100, 0, 0});
  std::fill(&f.x(0, 0), &f.x(0, 0) + 100, 12345.678f);
  auto a = f.args();
  a.residual = nullptr;
  layer_norm(a, 2, 100);
  for (int64_t j = 0; j < 100; ++j) EXPECT_NEAR(f.y(0, j), f.shift(0, j), 1e-6);
  EXPECT_NEAR(f.rstd(0, 0), 1 / std::sqrt(1e-5), 1e-3);
}

TEST(LayerNorm, FusedRowsAreDropoutThenSumBitForBit) {
  const Layout at = {5, 77, 3, 1};
  const Dropout spec = {0.3, philox_key(4, 5, 6)};
  const auto ids = row_ids(at.rows);
  Buffers<float> f(at);
  auto a = f.args();
  a.dropout = spec;
  a.ids = ids.data();
  layer_norm(a, at.rows, at.cols);
  Matrix<float> z(at, 9);
  dropout(spec, ids.data(), f.x.data(), f.x.ld(), z.data(), z.ld(), at.rows, at.cols);
  add(z.data(), z.ld(), f.residual.data(), f.residual.ld(), z.data(), z.ld(), at.rows, at.cols);
  EXPECT_TRUE(same_bits(f.z, z));
}

TEST(LayerNorm, OutputsMayBeTheInputAndAreOptional) {
  const Layout at = {4, 131, 1, 1};
  const auto ids = row_ids(at.rows);
  for (const double probability : {0.0, 0.5}) {
    for (const bool residual : {false, true}) {
      Buffers<float> f(at), y_is_x(at), z_is_x(at);
      const auto settle = [&](LayerNormArgs<float> a) {
        a.dropout = {probability, philox_key(1, 1, 1)};
        a.ids = probability > 0 ? ids.data() : nullptr;
        if (!residual) a.residual = nullptr;
        return a;
      };
      layer_norm(settle(f.args()), at.rows, at.cols);
      auto a = settle(y_is_x.args());
      a.y = y_is_x.x.data();
      a.z = nullptr, a.mean = nullptr, a.rstd = nullptr;
      layer_norm(a, at.rows, at.cols);
      EXPECT_TRUE(same_bits(f.y, y_is_x.x) && y_is_x.x.guard_is_intact());
      a = settle(z_is_x.args());
      a.z = z_is_x.x.data();
      layer_norm(a, at.rows, at.cols);
      EXPECT_TRUE(same_bits(f.y, z_is_x.y) && same_bits(f.z, z_is_x.x));
    }
  }
}

TEST(LayerNorm, WithoutShiftOnlyTheGainActs) {
  const Layout at = {3, 21, 0, 0};
  Buffers<float> with(at), without(at);
  std::fill(&with.shift(0, 0), &with.shift(0, 0) + 21, 0.0f);
  layer_norm(with.args(), 3, 21);
  auto a = without.args();
  a.shift = nullptr;
  layer_norm(a, 3, 21);
  EXPECT_LE(difference(without.y, with.y), 1e-7);
}

TEST(LayerNorm, ARowDoesNotDependOnItsMates) {
  const Layout at = {300, 130, 0, 0};
  Buffers<float> f(at), alone(at);
  layer_norm(f.args(), at.rows, at.cols);
  for (int64_t i = at.rows; i-- > 0;) {
    auto a = alone.args();
    a.x += i * 130, a.residual += i * 130, a.y += i * 130, a.z += i * 130, a.mean += i, a.rstd += i;
    layer_norm(a, 1, 130);
  }
  EXPECT_TRUE(same_bits(f.y, alone.y) && same_bits(f.rstd, alone.rstd));
}

template <class T>
struct GradBuffers {
  Buffers<T> forward;
  Matrix<T> dy, dx, dr, d_gain, d_shift;

  explicit GradBuffers(const Layout& at)
      : forward(at),
        dy(at, 11),
        dx(at, 12),
        dr(at, 13),
        d_gain({1, at.cols, 0, 1}, 14),
        d_shift({1, at.cols, 0, 0}, 15) {}
  template <class From>
  explicit GradBuffers(const GradBuffers<From>& o)
      : forward(o.forward), dy(o.dy), dx(o.dx), dr(o.dr), d_gain(o.d_gain), d_shift(o.d_shift) {}

  LayerNormGrads<T> args() {
    LayerNormGrads<T> a;
    a.z = forward.z.data(), a.ldz = forward.z.ld();
    a.mean = forward.mean.data(), a.rstd = forward.rstd.data(), a.gain = forward.gain.data();
    a.dy = dy.data(), a.lddy = dy.ld();
    a.dx = dx.data(), a.lddx = dx.ld();
    a.d_residual = dr.data(), a.lddr = dr.ld();
    a.d_gain = d_gain.data(), a.d_shift = d_shift.data();
    return a;
  }
  bool guards_are_intact() const {
    return dx.guard_is_intact() && dr.guard_is_intact() && d_gain.guard_is_intact() &&
           d_shift.guard_is_intact();
  }
};

TEST(LayerNormGrad, MatchesTheFormulaInF64) {
  for (const Layout& at : layouts()) {
    if (at.cols == 0) continue;
    const auto ids = row_ids(at.rows);
    for (const bool accumulate : {false, true}) {
      GradBuffers<float> f(at);
      layer_norm(f.forward.args(), at.rows, at.cols);
      GradBuffers<double> w(f);
      auto a = f.args();
      auto b = w.args();
      a.dropout = b.dropout = {accumulate ? 0.25 : 0, philox_key(1, 2, 3)};
      a.ids = b.ids = ids.data();
      a.add_dx = a.add_d_residual = a.add_d_gain = a.add_d_shift = accumulate;
      b.add_dx = b.add_d_residual = b.add_d_gain = b.add_d_shift = accumulate;
      layer_norm_grad(a, at.rows, at.cols);
      reference::layer_norm_grad(b, at.rows, at.cols);
      // dz is small beside its terms where there are few columns: their size is the measure.
      for (int64_t i = 0; i < at.rows; ++i) {
        const double bound = 1e-6 * (1 + 6 * w.forward.rstd(0, i));
        for (int64_t j = 0; j < at.cols; ++j) {
          ASSERT_NEAR(static_cast<double>(f.dx(i, j)), w.dx(i, j), bound) << at.cols << " columns";
          ASSERT_NEAR(static_cast<double>(f.dr(i, j)), w.dr(i, j), bound) << at.cols << " columns";
        }
      }
      EXPECT_LE(difference(f.d_gain, w.d_gain), 2e-6) << at.rows << " x " << at.cols;
      EXPECT_LE(difference(f.d_shift, w.d_shift), 1e-6) << at.rows << " x " << at.cols;
      EXPECT_TRUE(f.guards_are_intact()) << at.rows << " x " << at.cols;
    }
  }
}

TEST(LayerNormGrad, EachOutputIsOptionalAndTheRestStaysTheSame) {
  const Layout at = {70, 45, 2, 1};
  GradBuffers<float> all(at);
  layer_norm(all.forward.args(), at.rows, at.cols);
  GradBuffers<float> some = all;
  layer_norm_grad(all.args(), at.rows, at.cols);
  for (int left_out = 0; left_out < 4; ++left_out) {
    GradBuffers<float> f = some;
    auto a = f.args();
    if (left_out == 0) a.dx = nullptr;
    if (left_out == 1) a.d_residual = nullptr;
    if (left_out == 2) a.d_gain = nullptr;
    if (left_out == 3) a.d_shift = nullptr;
    layer_norm_grad(a, at.rows, at.cols);
    EXPECT_TRUE(same_bits(f.dx, left_out == 0 ? some.dx : all.dx));
    EXPECT_TRUE(same_bits(f.dr, left_out == 1 ? some.dr : all.dr));
    EXPECT_TRUE(same_bits(f.d_gain, left_out == 2 ? some.d_gain : all.d_gain));
    EXPECT_TRUE(same_bits(f.d_shift, left_out == 3 ? some.d_shift : all.d_shift));
  }
}

TEST(LayerNormGrad, MayOverwriteTheIncomingGradient) {
  const Layout at = {6, 83, 2, 1};
  GradBuffers<float> f(at);
  layer_norm(f.forward.args(), at.rows, at.cols);
  GradBuffers<float> inside = f;
  layer_norm_grad(f.args(), at.rows, at.cols);
  auto a = inside.args();
  a.dx = inside.dy.data(), a.lddx = inside.dy.ld();
  layer_norm_grad(a, at.rows, at.cols);
  EXPECT_TRUE(same_bits(inside.dy, f.dx) && same_bits(inside.dr, f.dr));
}

TEST(LayerNormGrad, NoRowsGiveZeroSums) {
  GradBuffers<float> f(Layout{0, 20, 0, 0});
  layer_norm_grad(f.args(), 0, 20);
  for (int64_t j = 0; j < 20; ++j) EXPECT_EQ(f.d_gain(0, j) + f.d_shift(0, j), 0);
}

// Every input of z = residual + dropout(x), y = norm(z) gain + shift, in f64.
TEST(LayerNormGrad, AgreesWithFiniteDifferences) {
  const Layout at = {4, 7, 0, 0};
  const auto ids = row_ids(at.rows);
  const Dropout spec = {0.3, philox_key(2, 1, 1)};
  GradBuffers<double> g(at);
  const auto forward = [&](Buffers<double>& buffers) {
    auto a = buffers.args();
    a.dropout = spec;
    a.ids = ids.data();
    layer_norm(a, at.rows, at.cols);
    double value = 0;
    for (int64_t i = 0; i < at.rows; ++i) {
      for (int64_t j = 0; j < at.cols; ++j) value += buffers.y(i, j) * g.dy(i, j);
    }
    return value;
  };
  forward(g.forward);
  auto a = g.args();
  a.dropout = spec;
  a.ids = ids.data();
  layer_norm_grad(a, at.rows, at.cols);
  const auto check = [&](Matrix<double> Buffers<double>::*input, const Matrix<double>& grad) {
    for (int64_t i = 0; i < grad.rows(); ++i) {
      for (int64_t j = 0; j < grad.cols(); ++j) {
        Buffers<double> up = g.forward, down = g.forward;
        (up.*input)(i, j) += 1e-5;
        (down.*input)(i, j) -= 1e-5;
        EXPECT_NEAR(grad(i, j), (forward(up) - forward(down)) / 2e-5, 1e-8) << i << ", " << j;
      }
    }
  };
  check(&Buffers<double>::x, g.dx);
  check(&Buffers<double>::residual, g.dr);
  check(&Buffers<double>::gain, g.d_gain);
  check(&Buffers<double>::shift, g.d_shift);
}

}  // namespace
}  // namespace rapt::kernels
