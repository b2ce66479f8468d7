#include "rapt/kernels/optimizer.h"

#include "rapt/kernels/reference.h"
#include "tests/kernels/matrices.h"

namespace rapt::kernels {
namespace {

using testing::Matrix;
using testing::same_bits;

// Parameter, gradient and state; `offset` misaligns them.
template <class T>
struct State {
  Matrix<T> p, g, m, v;
  std::vector<bf16> twin;

  State(int64_t n, int64_t offset)
      : p({1, n, 0, offset}, 1),
        g({1, n, 0, offset}, 2),
        m({1, n, 0, offset}, 3),
        v({1, n, 0, offset}, 4, 0, 2),
        twin(static_cast<size_t>(n + 1), bf16(99.0f)) {}
  template <class From>
  explicit State(const State<From>& o) : p(o.p), g(o.g), m(o.m), v(o.v), twin(o.twin) {}

  int64_t n() const { return p.cols(); }
  bool twin_follows() const {
    for (int64_t j = 0; j < n(); ++j) {
      const bf16 want(static_cast<float>(p(0, j)));
      if (twin[static_cast<size_t>(j)].bits != want.bits) return false;
    }
    return twin.back().bits == bf16(99.0f).bits;
  }
};

std::vector<int64_t> lengths() {
  std::vector<int64_t> all;
  for (int64_t n = 0; n <= 70; ++n) all.push_back(n);
  for (const int64_t n : {127, 1000, 40000}) all.push_back(n);
  return all;
}

std::vector<SgdStep> sgd_steps() {
  SgdStep plain = {.rate = 0.1, .grad_scale = 0.5};
  SgdStep decay = {.rate = 0.1, .weight_decay = 0.01};
  SgdStep momentum = {.rate = 0.1, .momentum = 0.9, .dampening = 0.2, .weight_decay = 0.01};
  SgdStep nesterov = {.rate = 0.1, .momentum = 0.9, .grad_scale = 2, .nesterov = true};
  SgdStep first = momentum;
  first.first = true;
  return {plain, decay, momentum, nesterov, first};
}

TEST(Sgd, MatchesTheFormulaInF64) {
  for (const SgdStep& step : sgd_steps()) {
    for (const int64_t n : lengths()) {
      State<float> f(n, n % 3);
      State<double> w(f);
      float* m = step.momentum == 0 ? nullptr : f.m.data();
      sgd(step, f.p.data(), f.g.data(), m, f.twin.data(), n);
      reference::sgd(step, w.p.data(), w.g.data(), w.m.data(), w.twin.data(), n);
      EXPECT_LE(difference(f.p, w.p), 2e-7) << n;
      EXPECT_LE(difference(f.m, w.m), 2e-7) << n;
      EXPECT_TRUE(f.p.guard_is_intact() && f.m.guard_is_intact() && f.twin_follows()) << n;
    }
  }
}

std::vector<AdamStep> adam_steps() {
  AdamStep first = {.rate = 1e-3, .weight_decay = 0.01};
  AdamStep later = {.rate = 0.1,
                    .beta1 = 0.8,
                    .beta2 = 0.98,
                    .epsilon = 1e-6,
                    .weight_decay = 0.1,
                    .grad_scale = 0.25,
                    .t = 100};
  AdamStep coupled = later;
  coupled.decoupled = false;
  return {first, later, coupled};
}

TEST(Adam, MatchesTheFormulaInF64) {
  for (const AdamStep& step : adam_steps()) {
    for (const int64_t n : lengths()) {
      State<float> f(n, n % 3);
      State<double> w(f);
      adam(step, f.p.data(), f.g.data(), f.m.data(), f.v.data(), f.twin.data(), n);
      reference::adam(step, w.p.data(), w.g.data(), w.m.data(), w.v.data(), w.twin.data(), n);
      EXPECT_LE(difference(f.p, w.p), 5e-7) << n;
      EXPECT_LE(difference(f.m, w.m), 2e-7) << n;
      EXPECT_LE(difference(f.v, w.v), 2e-7) << n;
      EXPECT_TRUE(f.p.guard_is_intact() && f.m.guard_is_intact() && f.v.guard_is_intact());
      EXPECT_TRUE(f.twin_follows()) << n;
    }
  }
}

// By hand: after one step from zero state the update is rate * sign(g) (1 - tiny), whatever g is.
TEST(Adam, TheFirstStepIsTheRate) {
  double p[2] = {1, 1}, m[2] = {0, 0}, v[2] = {0, 0};
  const double g[2] = {1e-3, -70};
  adam({.rate = 0.01, .t = 1}, p, g, m, v, nullptr, 2);
  EXPECT_NEAR(p[0], 1 - 0.01 * 1e-3 / (1e-3 + 1e-8), 1e-12);
  EXPECT_NEAR(p[1], 1 + 0.01, 1e-11);
  EXPECT_NEAR(m[0], 1e-4, 1e-18);
  EXPECT_NEAR(v[1], 4.9, 1e-12);
}

// Three steps of torch.optim.AdamW as its documentation writes them, in f64.
TEST(Adam, ThreeStepsAreTheWrittenAlgorithm) {
  for (const bool decoupled : {true, false}) {
    double p = 0.7, m = 0, v = 0, q = p, a = 0, b = 0;
    const double lr = 0.05, wd = 0.1, b1 = 0.9, b2 = 0.999, eps = 1e-8;
    for (int t = 1; t <= 3; ++t) {
      double g = 0.3 * t - 0.5;
      adam({.rate = lr, .weight_decay = wd, .decoupled = decoupled, .t = t}, &p, &g, &m, &v,
           nullptr, 1);
      if (decoupled) q -= lr * wd * q;
      if (!decoupled) g += wd * q;
      a = b1 * a + (1 - b1) * g;
      b = b2 * b + (1 - b2) * g * g;
      const double a_hat = a / (1 - std::pow(b1, t)), b_hat = b / (1 - std::pow(b2, t));
      q -= lr * a_hat / (std::sqrt(b_hat) + eps);
      EXPECT_NEAR(p, q, 1e-15);
    }
  }
}

TEST(Sgd, MomentumIsTheWrittenAlgorithm) {
  double p = 0.7, m = 0, q = p, b = 0;
  for (int t = 1; t <= 3; ++t) {
    const double g = 0.3 * t - 0.5;
    sgd({.rate = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true, .first = t == 1}, &p,
        &g, &m, nullptr, 1);
    const double full = g + 0.01 * q;
    b = t == 1 ? full : 0.9 * b + full;
    q -= 0.1 * (full + 0.9 * b);
    EXPECT_NEAR(p, q, 1e-15);
  }
}

TEST(Adam, ZeroGradientsWithoutDecayChangeNothing) {
  State<float> f(100, 0);
  const Matrix<float> before = f.p;
  std::fill(&f.g(0, 0), &f.g(0, 0) + 100, 0.0f);
  std::fill(&f.m(0, 0), &f.m(0, 0) + 100, 0.0f);
  std::fill(&f.v(0, 0), &f.v(0, 0) + 100, 0.0f);
  adam({.rate = 0.1}, f.p.data(), f.g.data(), f.m.data(), f.v.data(), nullptr, 100);
  EXPECT_TRUE(same_bits(f.p, before));
}

}  // namespace
}  // namespace rapt::kernels
