// An affine map of channels: y = x W^T + b.
#pragma once

#include "rapt/nn/module.h"
#include "rapt/ops/feed_forward.h"
#include "rapt/ops/linear.h"

namespace rapt::nn {

// x (N, in) times rows [begin, begin + count) of a weight (out, in), plus those of the bias (out),
// which may be undefined: (N, count). A weight that is frozen multiplies as it is.
Tensor linear(const Tensor& x, const Parameter& weight, const Parameter& bias, int64_t begin,
              int64_t count, const Pass& pass);

class Linear : public Module {
 public:
  // Weight (out, in) and bias uniform within 1 / sqrt(in). Throws Error for negative sizes.
  Linear(int64_t in, int64_t out, bool bias, const Init& init);
  // With a weight that is there: tied to another layer's. Its bias, if any, starts at 0.
  Linear(const Parameter& weight, bool bias, const Init& init);

  Tensor forward(const Tensor& x, const Pass& pass) const;  // (N, in) -> (N, out)
  // Output rows [begin, begin + count) alone: (N, in) -> (N, count).
  Tensor forward(const Tensor& x, int64_t begin, int64_t count, const Pass& pass) const;

  // The same in f32 where the weight is frozen in bf16.
  Tensor forward_precise(const Tensor& x, const Pass& pass) const;

  // Weight and bias for an op that has this layer inside; they must not be int8.
  Affine use(const Pass& pass) const;

  void visit(const Visitor& visitor, const std::string& prefix) const override;
  const Parameter& weight() const { return weight_; }
  const Parameter& bias() const { return bias_; }  // undefined without one

 private:
  Parameter weight_, bias_;
};

}  // namespace rapt::nn
