#include "rapt/nn/layer_norm.h"

#include "rapt/base/check.h"
#include "rapt/ops/layer_norm.h"

namespace rapt::nn {

LayerNorm::LayerNorm(int64_t C, double epsilon, bool bias, const Init& init) : epsilon_(epsilon) {
  RAPT_CHECK(epsilon > 0, "LayerNorm: expected a positive layer_norm_eps, got {}", epsilon);
  gain_ = init.constant({C}, 1);
  if (bias) shift_ = init.constant({C}, 0);
}

Tensor LayerNorm::forward(const Tensor& x, const Pass& pass) const {
  return layer_norm(x, pass.use(gain_), shift_.defined() ? pass.use(shift_) : Tensor(), epsilon_);
}

Tensor LayerNorm::forward_residual(const Tensor& x, const Tensor& residual, const Rows& rows,
                                   double dropout, const Pass& pass) const {
  return residual_layer_norm(x, residual, rows, pass.dropout(dropout), pass.use(gain_),
                             shift_.defined() ? pass.use(shift_) : Tensor(), epsilon_);
}

void LayerNorm::visit(const Visitor& visitor, const std::string& prefix) const {
  visitor({join_name(prefix, "weight"), gain_, 0, gain_.shape()[0]});
  if (shift_.defined()) visitor({join_name(prefix, "bias"), shift_, 0, shift_.shape()[0]});
}

}  // namespace rapt::nn
