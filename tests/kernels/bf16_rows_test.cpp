// The kernels that go row by row, in bf16: against the formulas in f64 on the same numbers.
#include <functional>

#include "rapt/kernels/reference.h"
#include "rapt/kernels/softmax.h"
#include "tests/kernels/matrices.h"

namespace rapt::kernels {
namespace {

using testing::Layout;
using testing::layouts;
using testing::row_ids;

// A matrix of bf16 numbers inside a larger one, whose other elements must stay.
struct Narrow {
  Layout at;
  int64_t ld;
  std::vector<bf16> values;

  Narrow(const Layout& layout, uint64_t seed, double low = -3, double high = 3)
      : at(layout),
        ld(layout.cols + layout.gap),
        values(static_cast<size_t>(layout.offset + layout.rows * ld + 16), bf16(-7654321.0f)) {
    const testing::Matrix<float> drawn({at.rows, at.cols, 0, 0}, seed, low, high);
    for (int64_t i = 0; i < at.rows; ++i) {
      for (int64_t j = 0; j < at.cols; ++j) data()[i * ld + j] = bf16(drawn(i, j));
    }
  }
  bf16* data() { return values.data() + at.offset; }
  const bf16* data() const { return values.data() + at.offset; }

  std::vector<double> wide() const {
    std::vector<double> all;
    for (int64_t i = 0; i < at.rows; ++i) {
      for (int64_t j = 0; j < at.cols; ++j)
        all.push_back(static_cast<double>(static_cast<float>(data()[i * ld + j])));
    }
    return all;
  }
  bool guard_is_intact() const {
    for (int64_t k = 0; k < static_cast<int64_t>(values.size()); ++k) {
      const int64_t place = k - at.offset;
      const bool inside = place >= 0 && place < at.rows * ld && place % ld < at.cols;
      if (!inside && values[static_cast<size_t>(k)].bits != bf16(-7654321.0f).bits) return false;
    }
    return true;
  }
};

// Every element is the nearest bf16 number to what f32 makes of it: half a unit in the last place,
// and `slack` for the f32 arithmetic.
void expect_rounded(const Narrow& got, const std::vector<double>& want, double slack = 1e-5) {
  const std::vector<double> values = got.wide();
  ASSERT_EQ(values.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_LE(std::abs(values[i] - want[i]), std::abs(want[i]) * (1.0 / 256 + slack) + slack)
        << "element " << i << " of rows of " << got.at.cols;
  }
  EXPECT_TRUE(got.guard_is_intact()) << got.at.rows << " x " << got.at.cols;
}

template <class T>
std::vector<double> widened(const std::vector<T>& x) {
  return {x.begin(), x.end()};
}

TEST(Bf16Rows, SumsProductsScalesAndFillsAreRoundedOnce) {
  for (const Layout& at : layouts()) {
    const Narrow a(at, 1), b(at, 2);
    const std::vector<double> wa = a.wide(), wb = b.wide();
    std::vector<double> want(wa.size());
    const int64_t m = at.rows, n = at.cols;
    Narrow y(at, 3);
    add(a.data(), a.ld, b.data(), b.ld, y.data(), y.ld, m, n);
    for (size_t i = 0; i < want.size(); ++i) want[i] = wa[i] + wb[i];
    expect_rounded(y, want);
    multiply(a.data(), a.ld, b.data(), b.ld, y.data(), y.ld, m, n);
    for (size_t i = 0; i < want.size(); ++i) want[i] = wa[i] * wb[i];
    expect_rounded(y, want);
    const std::vector<double> before = y.wide();
    scale(a.data(), a.ld, 1.7, y.data(), y.ld, m, n, true);
    for (size_t i = 0; i < want.size(); ++i) want[i] = before[i] + 1.7 * wa[i];
    expect_rounded(y, want);
    scale(a.data(), a.ld, 1.7, y.data(), y.ld, m, n, false);
    for (size_t i = 0; i < want.size(); ++i) want[i] = 1.7 * wa[i];
    expect_rounded(y, want);
    fill(y.data(), y.ld, 0.3, m, n);
    expect_rounded(y, std::vector<double>(want.size(), 0.3));
  }
}

TEST(Bf16Rows, ActivationsAndTheirSlopesAreRoundedOnce) {
  constexpr double kRough = 1e-4;  // of the functions themselves; gradients of up to 3 times that
  for (const Layout& at : layouts()) {
    const Narrow x(at, 1), dy(at, 2);
    const std::vector<double> wx = x.wide(), wdy = dy.wide();
    std::vector<double> want(wx.size());
    for (const Activation kind : {Activation::relu, Activation::gelu, Activation::gelu_tanh}) {
      Narrow y(at, 3);
      activation(kind, x.data(), x.ld, y.data(), y.ld, at.rows, at.cols);
      for (size_t i = 0; i < want.size(); ++i) want[i] = reference::activate(kind, wx[i]);
      expect_rounded(y, want, kRough);
      activation_grad(kind, x.data(), x.ld, dy.data(), dy.ld, y.data(), y.ld, at.rows, at.cols);
      for (size_t i = 0; i < want.size(); ++i)
        want[i] = wdy[i] * reference::derivative(kind, wx[i]);
      expect_rounded(y, want, 3 * kRough);
    }
  }
}

TEST(Bf16Rows, DropoutDropsTheSameElements) {
  for (const Layout& at : layouts()) {
    const auto ids = row_ids(at.rows);
    const Narrow x(at, 1);
    const std::vector<double> wx = x.wide();
    for (const double probability : {0.0, 0.25}) {
      const Dropout spec = {probability, philox_key(1, 2, 3)};
      Narrow y(at, 2);
      dropout(spec, ids.data(), x.data(), x.ld, y.data(), y.ld, at.rows, at.cols);
      std::vector<double> want(wx.size());
      reference::dropout(spec, ids.data(), wx.data(), at.cols, want.data(), at.cols, at.rows,
                         at.cols);
      expect_rounded(y, want);
    }
  }
}

TEST(Bf16Rows, EmbeddingsOfF32TablesAreRoundedOnce) {
  constexpr int64_t kV = 11;
  for (const Layout& at : layouts()) {
    const testing::Matrix<float> table({kV, at.cols, 0, 0}, 1), positions({3, at.cols, 0, 0}, 2);
    const testing::Matrix<double> wide_table(table), wide_positions(positions);
    const auto rows = row_ids(at.rows);
    std::vector<int32_t> ids;
    for (int64_t i = 0; i < at.rows; ++i) ids.push_back(static_cast<int32_t>(i % 2 * (i % kV)));
    const auto settle = [&](auto args, const auto& from, const auto& at_positions) {
      args.table = from.data(), args.ldt = at.cols;
      args.positions = at_positions.data(), args.ldp = at.cols;
      args.ids = ids.data(), args.rows = rows.data();
      args.factor = 1.7;
      args.dropout = {0.25, philox_key(1, 2, 3)};
      return args;
    };
    const auto args = settle(EmbeddingArgs<bf16>(), table, positions);
    const auto wide_args = settle(EmbeddingArgs<double>(), wide_table, wide_positions);
    Narrow y(at, 3);
    std::vector<double> want(static_cast<size_t>(at.rows * at.cols));
    embedding(args, y.data(), y.ld, at.rows, at.cols);
    reference::embedding(wide_args, want.data(), at.cols, at.rows, at.cols);
    expect_rounded(y, want);
    for (const bool first : {false, true}) {
      testing::Matrix<float> d({kV, at.cols, 0, 1}, 5);
      testing::Matrix<double> want_d(d);
      const std::vector<double> dy = y.wide();
      embedding_grad(args, y.data(), y.ld, d.data(), kV, first, at.rows, at.cols);
      reference::embedding_grad(wide_args, dy.data(), at.cols, want_d.data(), kV, first, at.rows,
                                at.cols);
      EXPECT_LE(difference(d, want_d), 1e-6) << at.rows << " x " << at.cols;
      EXPECT_TRUE(d.guard_is_intact());
    }
  }
}

// A norm's operands: activations in bf16, gain, shift and moments in f32.
struct Norm {
  Layout at;
  Narrow x, residual, y, z, dy, dx, dr;
  std::vector<float> gain, shift, mean, rstd, d_gain, d_shift;
  std::vector<RowId> ids;
  Dropout spec;

  Norm(const Layout& layout, double probability)
      : at(layout),
        x(at, 1),
        residual(at, 2),
        y(at, 5),
        z(at, 6),
        dy(at, 7),
        dx(at, 8),
        dr(at, 9),
        mean(static_cast<size_t>(at.rows)),
        rstd(mean),
        ids(row_ids(at.rows)),
        spec{probability, philox_key(1, 2, 3)} {
    Rng rng(4);
    for (int64_t j = 0; j < at.cols; ++j) {
      gain.push_back(static_cast<float>(rng.uniform(0.5, 2)));
      shift.push_back(static_cast<float>(rng.normal()));
      d_gain.push_back(static_cast<float>(rng.normal()));
      d_shift.push_back(static_cast<float>(rng.normal()));
    }
  }
  LayerNormArgs<bf16> forward() {
    LayerNormArgs<bf16> a;
    a.x = x.data(), a.ldx = x.ld, a.residual = residual.data(), a.ldr = residual.ld;
    a.gain = gain.data(), a.shift = shift.data();
    a.y = y.data(), a.ldy = y.ld, a.z = z.data(), a.ldz = z.ld;
    a.mean = mean.data(), a.rstd = rstd.data();
    a.dropout = spec, a.ids = ids.data();
    return a;
  }
  LayerNormGrads<bf16> backward() {
    LayerNormGrads<bf16> a;
    a.z = z.data(), a.ldz = z.ld, a.dy = dy.data(), a.lddy = dy.ld;
    a.mean = mean.data(), a.rstd = rstd.data(), a.gain = gain.data();
    a.dropout = spec, a.ids = ids.data();
    a.dx = dx.data(), a.lddx = dx.ld, a.d_residual = dr.data(), a.lddr = dr.ld;
    a.d_gain = d_gain.data(), a.d_shift = d_shift.data();
    return a;
  }
};

TEST(Bf16Rows, LayerNormIsThatOfTheSumItKeeps) {
  for (const Layout& at : layouts()) {
    if (at.cols == 0) continue;
    for (const double probability : {0.0, 0.25}) {
      Norm n(at, probability);
      layer_norm(n.forward(), at.rows, at.cols);
      const std::vector<double> x = n.x.wide(), residual = n.residual.wide();
      const std::vector<double> gain = widened(n.gain), shift = widened(n.shift);
      std::vector<double> z(x.size()), y(x.size()), rstd(n.rstd.size());
      reference::dropout(n.spec, n.ids.data(), x.data(), at.cols, z.data(), at.cols, at.rows,
                         at.cols);
      for (size_t i = 0; i < z.size(); ++i) z[i] += residual[i];
      expect_rounded(n.z, z);
      const std::vector<double> kept = n.z.wide();
      LayerNormArgs<double> want;
      want.x = kept.data(), want.ldx = at.cols, want.gain = gain.data(), want.shift = shift.data();
      want.y = y.data(), want.ldy = at.cols, want.rstd = rstd.data();
      reference::layer_norm(want, at.rows, at.cols);
      expect_rounded(n.y, y, 1e-4);
      for (size_t i = 0; i < rstd.size(); ++i) EXPECT_NEAR(n.rstd[i] / rstd[i], 1, 1e-5);
    }
  }
}

TEST(Bf16Rows, LayerNormGradientsOfParametersAreF32) {
  for (const Layout& at : layouts()) {
    if (at.cols == 0) continue;
    for (const bool accumulate : {false, true}) {
      Norm n(at, 0.25);
      layer_norm(n.forward(), at.rows, at.cols);
      auto a = n.backward();
      a.add_dx = a.add_d_residual = a.add_d_gain = a.add_d_shift = accumulate;
      const std::vector<double> z = n.z.wide(), dy = n.dy.wide(), gain = widened(n.gain),
                                mean = widened(n.mean), rstd = widened(n.rstd);
      std::vector<double> dx = n.dx.wide(), dr = n.dr.wide(), d_gain = widened(n.d_gain),
                          d_shift = widened(n.d_shift);
      LayerNormGrads<double> want;
      want.z = z.data(), want.ldz = at.cols, want.dy = dy.data(), want.lddy = at.cols;
      want.mean = mean.data(), want.rstd = rstd.data(), want.gain = gain.data();
      want.dropout = n.spec, want.ids = n.ids.data();
      want.dx = dx.data(), want.lddx = at.cols, want.d_residual = dr.data(), want.lddr = at.cols;
      want.d_gain = d_gain.data(), want.d_shift = d_shift.data();
      want.add_dx = want.add_d_residual = want.add_d_gain = want.add_d_shift = accumulate;
      layer_norm_grad(a, at.rows, at.cols);
      reference::layer_norm_grad(want, at.rows, at.cols);
      double largest = 1;  // dz is small beside its terms where there are few columns
      for (const double r : rstd) largest = std::max(largest, r);
      expect_rounded(n.dx, dx, 1e-5 * largest);
      expect_rounded(n.dr, dr, 1e-5 * largest);
      for (size_t j = 0; j < gain.size(); ++j) {
        ASSERT_NEAR(n.d_gain[j], d_gain[j], 1e-4 * largest) << at.rows << " x " << at.cols;
        ASSERT_NEAR(n.d_shift[j], d_shift[j], 1e-4) << at.rows << " x " << at.cols;
      }
    }
  }
}

TEST(Bf16Rows, SoftmaxIsRoundedOnce) {
  for (const Layout& at : layouts()) {
    if (at.cols == 0) continue;
    const Narrow x(at, 1), dy(at, 2);
    const std::vector<double> wx = x.wide(), wdy = dy.wide();
    std::vector<double> want(wx.size());
    Narrow y(at, 3);
    softmax(x.data(), x.ld, y.data(), y.ld, at.rows, at.cols);
    reference::softmax(wx.data(), at.cols, want.data(), at.cols, at.rows, at.cols);
    expect_rounded(y, want);
    Narrow dx(at, 4);
    const std::vector<double> wy = y.wide();
    softmax_grad(y.data(), y.ld, dy.data(), dy.ld, dx.data(), dx.ld, at.rows, at.cols);
    reference::softmax_grad(wy.data(), at.cols, wdy.data(), at.cols, want.data(), at.cols, at.rows,
                            at.cols);
    expect_rounded(dx, want);
    log_softmax(x.data(), x.ld, y.data(), y.ld, at.rows, at.cols);
    reference::log_softmax(wx.data(), at.cols, want.data(), at.cols, at.rows, at.cols);
    expect_rounded(y, want);
    std::vector<int32_t> best(static_cast<size_t>(at.rows)), want_best(best);
    argmax(x.data(), x.ld, best.data(), at.rows, at.cols);
    reference::argmax(wx.data(), at.cols, want_best.data(), at.rows, at.cols);
    EXPECT_EQ(best, want_best);
  }
}

TEST(Bf16Rows, CrossEntropyHasF32LossesAndGradientsRoundedOnce) {
  for (const Layout& at : layouts()) {
    if (at.cols == 0) continue;
    std::vector<int32_t> targets;
    for (int64_t i = 0; i < at.rows; ++i)
      targets.push_back(i % 4 == 3 ? -100 : static_cast<int32_t>((i * 7) % at.cols));
    for (const double smoothing : {0.0, 0.1}) {
      Narrow x(at, 1), d(at, 2);
      const std::vector<double> wx = x.wide();
      std::vector<double> want(wx.size()), want_losses(targets.size());
      std::vector<float> losses(targets.size()), alone(targets.size());
      cross_entropy(x.data(), x.ld, targets.data(), -100, smoothing, losses.data(), d.data(), d.ld,
                    at.rows, at.cols);
      cross_entropy(x.data(), x.ld, targets.data(), -100, smoothing, alone.data(), nullptr, 0,
                    at.rows, at.cols);
      reference::cross_entropy(wx.data(), at.cols, targets.data(), -100, smoothing,
                               want_losses.data(), want.data(), at.cols, at.rows, at.cols);
      expect_rounded(d, want, 1e-6);
      for (size_t i = 0; i < losses.size(); ++i)
        EXPECT_NEAR(losses[i], want_losses[i], 1e-5 * (1 + want_losses[i])) << at.cols;
      EXPECT_EQ(losses, alone);
      cross_entropy(x.data(), x.ld, targets.data(), -100, smoothing, alone.data(), x.data(), x.ld,
                    at.rows, at.cols);  // in place
      EXPECT_EQ(losses, alone);
      EXPECT_EQ(x.wide(), d.wide());
      EXPECT_TRUE(x.guard_is_intact());
    }
  }
}

TEST(Bf16Rows, ThreadsDoNotChangeABit) {
  const Layout at = {500, 130, 0, 0};
  EXPECT_TRUE(testing::same_for_any_threads([&] {
    Norm n(at, 0.25);
    layer_norm(n.forward(), at.rows, at.cols);
    layer_norm_grad(n.backward(), at.rows, at.cols);
    std::vector<float> all = n.d_gain;
    for (const double v : n.dx.wide()) all.push_back(static_cast<float>(v));
    return all;
  }));
}

}  // namespace
}  // namespace rapt::kernels
