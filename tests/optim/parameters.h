// Parameters with gradients that are given, for tests of the optimizers.
#pragma once

#include <string>
#include <vector>

#include "rapt/optim/optimizer.h"
#include "rapt/tensor/tape.h"
#include "tests/testing/tensors.h"

namespace rapt::testing {

inline NamedParameter named(const std::string& name, const Parameter& parameter) {
  return {name, parameter, 0, parameter.shape()[0]};
}

// Makes `gradient` the gradient of a parameter.
inline void send(Gradients& gradients, const Parameter& parameter, const Tensor& gradient) {
  const Tensor leaf = gradients.use(parameter);
  backward(record(empty_like(leaf), {leaf}, [](const Tensor& dy, Sink& d) { d.give(0, dy); }),
           gradient);
}

inline Tensor filled(const Shape& shape, double value, DType dtype = DType::f64) {
  return Tensor::full(shape, dtype, value);
}

}  // namespace rapt::testing
