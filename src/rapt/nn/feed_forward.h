// The position-wise feed-forward network, Vaswani et al. 2017, section 3.3: two affine maps with an
// activation and dropout between them.
#pragma once

#include <string>

#include "rapt/nn/linear.h"

namespace rapt::nn {

enum class Activation { relu, gelu, gelu_tanh };
Activation parse_activation(const std::string& name);  // throws Error that lists the names
std::string activation_name(Activation activation);

class FeedForward : public Module {
 public:
  FeedForward(int64_t d_model, int64_t dim_feedforward, Activation activation, double dropout,
              bool bias, const Init& init);

  Tensor forward(const Tensor& x, const Rows& rows, const Pass& pass) const;  // (N, C) -> (N, C)

  void visit(const Visitor& visitor, const std::string& prefix) const override;

 private:
  Activation activation_;
  double dropout_;
  Linear linear1_, linear2_;
};

}  // namespace rapt::nn
