// Proof of a module's gradients by finite differences in f64, parameter by parameter.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "rapt/nn/module.h"

namespace rapt::testing {

struct ModuleCheck {
  double tolerance =
      1e-7;  // of the largest gradient of the same parameter, or of 1 if that is larger
  double step = 1e-4;
  int64_t most = 24;   // elements tried of one parameter
  PassOptions pass{};  // training, seed and step of the passes
};

// Sends a random dy back through `forward` and compares the gradient of every parameter of the f64
// module, under each of its names, with central differences. The failure names the parameter and
// the element.
::testing::AssertionResult check_module(const nn::Module& module,
                                        const std::function<Tensor(const Pass&)>& forward,
                                        const ModuleCheck& check = {});

// Whether no two matrices of an f64 module's layers begin with the same numbers, as those of copied
// layers would, and the same seed draws the same ones again. The failure names them.
::testing::AssertionResult check_first_weights(
    const std::function<std::unique_ptr<nn::Module>(Rng& rng)>& make);

}  // namespace rapt::testing
