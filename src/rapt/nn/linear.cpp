#include "rapt/nn/linear.h"

#include <cmath>

#include "rapt/ops/int8_linear.h"

namespace rapt::nn {

Linear::Linear(int64_t in, int64_t out, bool bias, const Init& init) {
  const double bound = in > 0 ? 1 / std::sqrt(static_cast<double>(in)) : 0;
  weight_ = init.uniform({out, in}, bound);
  if (bias) bias_ = init.uniform({out}, bound);
}

Linear::Linear(const Parameter& weight, bool bias, const Init& init) : weight_(weight) {
  if (bias) bias_ = init.constant({weight.shape()[0]}, 0);
}

Tensor linear(const Tensor& x, const Parameter& weight, const Parameter& bias, int64_t begin,
              int64_t count, const Pass& pass) {
  const Tensor b = bias.defined() ? pass.use(bias, begin, count) : Tensor();
  if (weight.int8() != nullptr) return int8_linear(x, *weight.int8(), begin, count, b);
  return linear(x, pass.use_matrix(weight, begin, count), b);
}

Tensor Linear::forward(const Tensor& x, const Pass& pass) const {
  return forward(x, 0, weight_.shape()[0], pass);
}

Tensor Linear::forward(const Tensor& x, int64_t begin, int64_t count, const Pass& pass) const {
  return linear(x, weight_, bias_, begin, count, pass);
}

Tensor Linear::forward_precise(const Tensor& x, const Pass& pass) const {
  if (!weight_.is_bf16()) return forward(x, pass);
  return precise_linear(x, pass.use_matrix(weight_), bias_.defined() ? pass.use(bias_) : Tensor());
}

Affine Linear::use(const Pass& pass) const {
  return {pass.use_matrix(weight_), bias_.defined() ? pass.use(bias_) : Tensor()};
}

void Linear::visit(const Visitor& visitor, const std::string& prefix) const {
  visitor({join_name(prefix, "weight"), weight_, 0, weight_.shape()[0]});
  if (bias_.defined()) visitor({join_name(prefix, "bias"), bias_, 0, bias_.shape()[0]});
}

}  // namespace rapt::nn
