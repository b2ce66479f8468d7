#include "rapt/nn/feed_forward.h"

#include "rapt/base/check.h"
#include "rapt/ops/elementwise.h"

namespace rapt::nn {

Activation parse_activation(const std::string& name) {
  for (const Activation a : {Activation::relu, Activation::gelu, Activation::gelu_tanh}) {
    if (activation_name(a) == name) return a;
  }
  fail(ErrorKind::failure, "activation: expected relu, gelu or gelu_tanh, got \"{}\"", name);
}

std::string activation_name(Activation activation) {
  constexpr const char* names[] = {"relu", "gelu", "gelu_tanh"};
  return names[static_cast<int>(activation)];
}

FeedForward::FeedForward(int64_t d_model, int64_t dim_feedforward, Activation activation,
                         double dropout, bool bias, const Init& init)
    : activation_(activation),
      dropout_(dropout),
      linear1_(d_model, dim_feedforward, bias, init),
      linear2_(dim_feedforward, d_model, bias, init) {
  RAPT_CHECK(dim_feedforward > 0, "FeedForward: expected dim_feedforward of at least 1, got {}",
             dim_feedforward);
}

Tensor FeedForward::forward(const Tensor& x, const Rows& rows, const Pass& pass) const {
  Tensor hidden = linear1_.forward(x, pass);  // (N, F)
  switch (activation_) {
    case Activation::relu:
      hidden = relu(std::move(hidden));
      break;
    case Activation::gelu:
      hidden = gelu(hidden);
      break;
    case Activation::gelu_tanh:
      hidden = gelu_tanh(hidden);
      break;
  }
  hidden = dropout(std::move(hidden), rows, pass.scope("hidden").dropout(dropout_));
  return linear2_.forward(hidden, pass);  // (N, C)
}

void FeedForward::visit(const Visitor& visitor, const std::string& prefix) const {
  linear1_.visit(visitor, join_name(prefix, "linear1"));
  linear2_.visit(visitor, join_name(prefix, "linear2"));
}

}  // namespace rapt::nn
