// The position-wise feed-forward network, Vaswani et al. 2017, section 3.3: two affine maps with an
// activation and dropout between them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "rapt/nn/linear.h"

namespace rapt::nn {

// The function between the two maps: (N, F) -> (N, F), element by element.
class Activation {
 public:
  // relu, gelu or gelu_tanh (ops/elementwise.h). Throws Error that lists the names.
  Activation(const std::string& name);  // implicit: options name it
  Activation(const char* name) : Activation(std::string(name)) {}
  // Any function that is built of ops. It must give the same for the same input.
  Activation(std::function<Tensor(Tensor x)> function);

  Tensor operator()(Tensor x) const { return function_(std::move(x)); }
  const std::string& name() const { return name_; }  // empty for a function of one's own
  std::optional<kernels::Activation> kind() const { return kind_; }  // none for such a one

 private:
  std::string name_;
  std::optional<kernels::Activation> kind_;
  std::function<Tensor(Tensor x)> function_;
};

class FeedForward : public Module {
 public:
  FeedForward(int64_t d_model, int64_t dim_feedforward, const Activation& activation,
              double dropout, bool bias, const Init& init);

  Tensor forward(const Tensor& x, const Rows& rows, const Pass& pass) const;  // (N, C) -> (N, C)

  void visit(const Visitor& visitor, const std::string& prefix) const override;

 private:
  Activation activation_;
  double dropout_;
  Linear linear1_, linear2_;
};

}  // namespace rapt::nn
