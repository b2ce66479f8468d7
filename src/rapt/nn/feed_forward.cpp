#include "rapt/nn/feed_forward.h"

#include "rapt/base/check.h"
#include "rapt/ops/elementwise.h"
#include "rapt/ops/feed_forward.h"

namespace rapt::nn {

Activation::Activation(const std::string& name) : name_(name) {
  if (name == "relu") {
    kind_ = kernels::Activation::relu;
    function_ = relu;
  } else if (name == "gelu") {
    kind_ = kernels::Activation::gelu;
    function_ = gelu;
  } else if (name == "gelu_tanh") {
    kind_ = kernels::Activation::gelu_tanh;
    function_ = gelu_tanh;
  } else {
    fail(ErrorKind::failure, "activation: expected relu, gelu or gelu_tanh, got \"{}\"", name);
  }
}

Activation::Activation(std::function<Tensor(Tensor x)> function) : function_(std::move(function)) {
  RAPT_CHECK(function_ != nullptr, "activation: expected a function, got none");
}

FeedForward::FeedForward(int64_t d_model, int64_t dim_feedforward, const Activation& activation,
                         double dropout, bool bias, const Init& init)
    : activation_(activation),
      dropout_(dropout),
      linear1_(d_model, dim_feedforward, bias, init),
      linear2_(dim_feedforward, d_model, bias, init) {
  RAPT_CHECK(dim_feedforward > 0, "FeedForward: expected dim_feedforward of at least 1, got {}",
             dim_feedforward);
}

Tensor FeedForward::forward(const Tensor& x, const Rows& rows, const Pass& pass) const {
  const kernels::Dropout site = pass.scope("hidden").dropout(dropout_);
  if (activation_.kind() && linear1_.weight().int8() == nullptr)
    return feed_forward(x, linear1_.use(pass), *activation_.kind(), rows, site, linear2_.use(pass));
  Tensor hidden = linear1_.forward(x, pass);  // (N, F)
  hidden = activation_(std::move(hidden));
  hidden = dropout(std::move(hidden), rows, site);
  return linear2_.forward(hidden, pass);  // (N, C)
}

void FeedForward::visit(const Visitor& visitor, const std::string& prefix) const {
  linear1_.visit(visitor, join_name(prefix, "linear1"));
  linear2_.visit(visitor, join_name(prefix, "linear2"));
}

}  // namespace rapt::nn
