// Layer normalisation, Ba et al. 2016.
#pragma once

#include "rapt/nn/module.h"

namespace rapt::nn {

class LayerNorm : public Module {
 public:
  // Gain 1 and, with `bias`, shift 0, of C channels. Throws Error unless epsilon is positive.
  LayerNorm(int64_t C, double epsilon, bool bias, const Init& init);

  Tensor forward(const Tensor& x, const Pass& pass) const;  // (N, C) -> (N, C)
  // norm(residual + dropout(x)) in one pass; the dropout's site is the pass's path.
  Tensor forward_residual(const Tensor& x, const Tensor& residual, const Rows& rows, double dropout,
                          const Pass& pass) const;

  void visit(const Visitor& visitor, const std::string& prefix) const override;

 private:
  Parameter gain_, shift_;
  double epsilon_;
};

}  // namespace rapt::nn
