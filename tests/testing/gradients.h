// Proof of a gradient by finite differences in f64.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "rapt/tensor/tensor.h"

namespace rapt::testing {

struct GradientCheck {
  double tolerance = 1e-8;  // of the largest gradient of the same input, or of 1 if that is larger
  double step = 1e-3;
  int64_t most = 300;  // elements tried of one input; a random choice of a larger one
  uint64_t seed = 1;   // of the choice and of the gradient that is sent back
};

// A function of f64 tensors. It is called many times and must return the same for the same inputs.
using TensorFunction = std::function<Tensor(const std::vector<Tensor>& inputs)>;

// Sends a random dy back through f and compares the gradient of every input with five-point central
// differences of sum(dy * f(inputs)), element by element. Proves besides, for every input, that
//  - the gradient is the same when no other input is recorded,
//  - a second backward into the same buffers adds exactly the same again,
//  - f returns the same bits when nothing is recorded.
// The failure names the input and the element.
::testing::AssertionResult check_gradients(const TensorFunction& f,
                                           const std::vector<Tensor>& inputs,
                                           const GradientCheck& check = {});

// Compares f and the gradients of its inputs in f32 with those of the same numbers in f64: for each
// tensor, max |difference| at most `tolerance` times its largest element.
::testing::AssertionResult check_f32(const TensorFunction& f, const std::vector<Tensor>& inputs,
                                     double tolerance = 1e-5);

}  // namespace rapt::testing
