// The rules against PyTorch's formulas by plain loops in f64, over several steps.
#include "tests/optim/parameters.h"

namespace rapt::optim {
namespace {

using rapt::testing::difference;
using rapt::testing::error_of;
using rapt::testing::named;
using rapt::testing::random_tensor;
using rapt::testing::send;
using rapt::testing::values_of;

constexpr int kSteps = 4;
constexpr double kScale = 0.25;
const Shape kShape{3, 23};

double rate_of(int step) { return 0.1 / (step + 1); }
Tensor gradient_of(int step, DType dtype) {
  return random_tensor(kShape, 100 + static_cast<uint64_t>(step), dtype);
}

struct SgdCase {
  double momentum, dampening;
  bool nesterov;
  double decay;
};

TEST(Sgd, FollowsTheFormula) {
  for (const SgdCase& c :
       {SgdCase{0, 0, false, 0}, SgdCase{0, 0, false, 0.1}, SgdCase{0.9, 0, false, 0},
        SgdCase{0.9, 0.3, false, 0.1}, SgdCase{0.8, 0, true, 0.1}}) {
    for (const DType dtype : {DType::f64, DType::f32}) {
      const Parameter weight(random_tensor(kShape, 1, dtype));
      std::vector<double> p = values_of(weight.value()), m(p.size());
      const auto optimizer = make_sgd({named("w", weight)}, {.momentum = c.momentum,
                                                             .dampening = c.dampening,
                                                             .nesterov = c.nesterov,
                                                             .common = {.weight_decay = c.decay}});
      Gradients gradients;
      for (int step = 0; step < kSteps; ++step) {
        gradients.clear();
        send(gradients, weight, gradient_of(step, dtype));
        EXPECT_TRUE(optimizer->step(gradients, kScale, rate_of(step)).applied);
        const std::vector<double> g = values_of(gradient_of(step, dtype));
        for (size_t i = 0; i < p.size(); ++i) {
          const double d = g[i] * kScale + c.decay * p[i];
          m[i] = step == 0 ? d : c.momentum * m[i] + (1 - c.dampening) * d;
          const double direction = c.momentum == 0 ? d : c.nesterov ? d + c.momentum * m[i] : m[i];
          p[i] -= rate_of(step) * direction;
        }
      }
      EXPECT_LE(difference(weight.value(), Tensor::from(p, kShape)),
                dtype == DType::f64 ? 1e-14 : 1e-6);
    }
  }
}

TEST(Adam, FollowsTheFormula) {
  for (const bool decoupled : {false, true}) {
    for (const double decay : {0.0, 0.1}) {
      for (const DType dtype : {DType::f64, DType::f32}) {
        const Parameter weight(random_tensor(kShape, 1, dtype));
        std::vector<double> p = values_of(weight.value()), m(p.size()), v(p.size());
        const AdamOptions options{
            .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6, .common = {.weight_decay = decay}};
        const auto optimizer = decoupled ? make_adamw({named("w", weight)}, options)
                                         : make_adam({named("w", weight)}, options);
        Gradients gradients;
        for (int step = 0; step < kSteps; ++step) {
          gradients.clear();
          send(gradients, weight, gradient_of(step, dtype));
          EXPECT_TRUE(optimizer->step(gradients, kScale, rate_of(step)).applied);
          const std::vector<double> sums = values_of(gradient_of(step, dtype));
          const double correction1 = 1 - std::pow(0.8, step + 1);
          const double correction2 = 1 - std::pow(0.95, step + 1);
          for (size_t i = 0; i < p.size(); ++i) {
            double g = sums[i] * kScale;
            if (decoupled) {
              p[i] *= 1 - rate_of(step) * decay;
            } else {
              g += decay * p[i];
            }
            m[i] = 0.8 * m[i] + 0.2 * g;
            v[i] = 0.95 * v[i] + 0.05 * g * g;
            const double root = std::sqrt(v[i]) / std::sqrt(correction2) + 1e-6;
            p[i] -= rate_of(step) / correction1 * m[i] / root;
          }
        }
        EXPECT_LE(difference(weight.value(), Tensor::from(p, kShape)),
                  dtype == DType::f64 ? 1e-13 : 2e-6)
            << decoupled << " " << decay;
      }
    }
  }
}

TEST(AdamW, R18_DecayPullsMatricesOnceAndNeitherGainsNorBiases) {
  const Parameter gain(Tensor::full({8}, DType::f32, 1)), bias(Tensor::zeros({8}, DType::f32));
  const Parameter tied(random_tensor({8, 4}, 1, DType::f32));
  const std::vector<double> before = values_of(tied.value());
  const auto optimizer = make_adamw({named("norm.gain", gain), named("norm.bias", bias),
                                     named("embedding", tied), named("projection", tied)},
                                    {.common = {.weight_decay = 0.1}});
  EXPECT_EQ(optimizer->parameters().size(), 3u);
  Gradients gradients;
  for (const Parameter& p : {gain, bias, tied}) {
    send(gradients, p, Tensor::zeros(p.shape(), DType::f32));
  }
  EXPECT_TRUE(optimizer->step(gradients, 1, 0.5).applied);
  EXPECT_EQ(values_of(gain.value()), std::vector<double>(8, 1));
  EXPECT_EQ(values_of(bias.value()), std::vector<double>(8, 0));
  const std::vector<double> after = values_of(tied.value());
  for (size_t i = 0; i < after.size(); ++i) {
    EXPECT_NEAR(after[i], before[i] * (1 - 0.5 * 0.1), 1e-7);
  }
}

TEST(AdamW, DecayAllPullsEverything) {
  const Parameter gain(Tensor::full({8}, DType::f64, 1));
  const auto optimizer =
      make_adamw({named("norm.gain", gain)}, {.common = {.weight_decay = 0.1, .decay_all = true}});
  Gradients gradients;
  send(gradients, gain, Tensor::zeros({8}, DType::f64));
  optimizer->step(gradients, 1, 0.5);
  EXPECT_NEAR(values_of(gain.value())[3], 0.95, 1e-15);
}

TEST(Optimizers, RefuseSettingsThatCannotBe) {
  const std::vector<NamedParameter> p = {named("w", Parameter(Tensor::zeros({2}, DType::f32)))};
  error_of([&] { make_sgd(p, {.momentum = -1, .common = {}}); });
  error_of([&] { make_sgd(p, {.momentum = NAN, .common = {}}); });
  EXPECT_NE(error_of([&] { make_sgd(p, {.nesterov = true, .common = {}}); }).find("momentum"),
            std::string::npos);
  error_of(
      [&] { make_sgd(p, {.momentum = 0.9, .dampening = 0.1, .nesterov = true, .common = {}}); });
  EXPECT_NE(error_of([&] { make_adam(p, {.beta1 = 1, .common = {}}); }).find("adam: "),
            std::string::npos);
  error_of([&] { make_adamw(p, {.beta2 = -0.1, .common = {}}); });
  error_of([&] { make_adamw(p, {.epsilon = 0, .common = {}}); });
  error_of([&] { make_adamw(p, {.common = {.weight_decay = -1}}); });
  error_of([&] { make_adamw(p, {.common = {.max_norm = NAN}}); });
}

}  // namespace
}  // namespace rapt::optim
