// The optimizers against five steps of PyTorch's.
#include "tests/golden/golden.h"
#include "rapt/ops/elementwise.h"
#include "rapt/optim/optimizer.h"

namespace rapt {
namespace {

using testing::Golden;

void expect_steps(const Golden& of, const Parameter& p, optim::Optimizer& optimizer) {
  const Tensor g = of.floats("g"), after = of.floats("after");
  Gradients gradients;
  for (int64_t step = 0; step < g.dim(0); ++step) {
    gradients.clear();
    // The gradient of a product is the other factor.
    const Tensor factor = g.rows(step, 1).reshape(p.shape());
    const Tensor product = multiply(Pass({.gradients = &gradients}).use(p), factor);
    backward(product, Tensor::full(p.shape(), DType::f64, 1));
    optimizer.step(gradients, 1, of.number("lr"));
    testing::expect_agrees(p.value(), after.rows(step, 1), 1e-13, "step " + std::to_string(step));
  }
}

// PyTorch lets everything decay.
optim::CommonOptions common(const Golden& of) {
  return {.weight_decay = of.has("weight_decay") ? of.number("weight_decay") : 0,
          .decay_all = true};
}

TEST(OptimGolden, SgdTakesPyTorchsSteps) {
  for (const char* name : {"sgd", "sgd_weight_decay", "sgd_momentum", "sgd_dampening",
                           "sgd_nesterov", "sgd_nesterov_weight_decay"}) {
    SCOPED_TRACE(name);
    const Golden of = Golden("optim/optimizers.safetensors").at(name);
    const Parameter p(of.floats("p"));
    const auto sgd = optim::make_sgd({{"p", p, 0, p.shape()[0]}},
                                     {.momentum = of.has("momentum") ? of.number("momentum") : 0,
                                      .dampening = of.has("dampening") ? of.number("dampening") : 0,
                                      .nesterov = of.has("nesterov"),
                                      .common = common(of)});
    expect_steps(of, p, *sgd);
  }
}

TEST(OptimGolden, AdamAndAdamwTakePyTorchsSteps) {
  for (const std::string name : {"adam", "adam_weight_decay", "adamw", "adamw_weight_decay"}) {
    SCOPED_TRACE(name);
    const Golden of = Golden("optim/optimizers.safetensors").at(name);
    const Parameter p(of.floats("p"));
    const auto make = name.starts_with("adamw") ? optim::make_adamw : optim::make_adam;
    const auto adam = make({{"p", p, 0, p.shape()[0]}}, {.beta1 = of.number("beta1"),
                                                         .beta2 = of.number("beta2"),
                                                         .epsilon = of.number("eps"),
                                                         .common = common(of)});
    expect_steps(of, p, *adam);
  }
}

}  // namespace
}  // namespace rapt
