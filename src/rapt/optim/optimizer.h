// Optimizers: from gradients that were summed over a step's micro-batches to new weights.
//
// One sweep over all parameters reads the gradients for their norm, a second one updates value,
// state and bf16 twin. Both are cut into pieces by the sizes alone, so that any number of threads
// gives the same bits. A step whose gradients are not finite changes nothing and says which
// parameter it was.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rapt/tensor/gradients.h"
#include "rapt/tensor/parameter.h"

namespace rapt::optim {

struct StepResult {
  bool applied = false;  // false: values and state are what they were
  // Of all scaled gradients, before clipping; NaN if it was not computed.
  double norm = 0;
  // Empty, or the first parameter whose gradient is not finite (or whose squares overflow).
  std::string bad_parameter;
};

// A tensor of the optimizer's state; its name begins with that of the parameter.
struct StateTensor {
  std::string name;
  Tensor value;
};

// What all optimizers can do beside their own rule.
struct CommonOptions {
  double weight_decay = 0;
  // Whether vectors (gains and biases) decay too; else only parameters of two axes and more.
  bool decay_all = false;
  // Gradients whose norm is larger are scaled down to it; 0: never.
  double max_norm = 0;
  // Whether gradients are read before the step to find numbers that are not finite. Without it and
  // without max_norm the norm is not computed.
  bool check_finite = true;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Updates every parameter that received a gradient, at learning rate `rate`. Gradients are sums:
  // they are multiplied by `scale`, one over what the loss counted in this step. A scale of 0 or of
  // infinity says that nothing was counted: nothing changes. Throws Error for a scale or rate that
  // is negative or not a number.
  StepResult step(Gradients& gradients, double scale, double rate);

  // Bytes that step() may yet take for what the rule keeps: all of it before the first step.
  int64_t bytes_to_come() const;

  // How many steps were applied.
  int64_t steps() const { return steps_; }
  // The parameters in order, each piece of memory once.
  const std::vector<NamedParameter>& parameters() const { return parameters_; }

  // All state: "steps", and for each parameter that was updated "NAME.steps" and what the rule
  // keeps, in the parameter's shape. The tensors share the optimizer's memory.
  std::vector<StateTensor> state() const;
  // Copies a state that state() made. Throws Error, and changes nothing, if a tensor is missing,
  // unknown, or of another shape or type.
  void load_state(const std::vector<StateTensor>& state);

 protected:
  // One piece of a parameter, as the rule sees it.
  struct Piece {
    DType dtype;
    void* value;
    const void* gradient;
    void* kept[2];  // null where the rule keeps less
    bf16* twin;     // or null
    int64_t count;
    int64_t step;  // of this parameter, from 1
    double rate, gradient_scale, weight_decay;
  };

  // `kept` names what the rule keeps for each parameter, at most two tensors, zero at first.
  // Parameters that come again under another name (tied ones) are left out. Throws Error for a name
  // that comes twice, ranges outside their parameter, and memory that overlaps otherwise.
  Optimizer(std::vector<NamedParameter> parameters, const CommonOptions& options,
            std::vector<std::string> kept, bool squares_gradients);

 private:
  virtual void update(const Piece& piece) const = 0;

  struct State {
    int64_t steps = 0;
    std::vector<Tensor> kept;  // empty before the first step
  };
  struct Active;
  struct Job;
  std::vector<Active> find_active(Gradients& gradients);
  double measure(const std::vector<Active>& active, const std::vector<Job>& jobs, double scale,
                 StepResult& result) const;

  std::vector<NamedParameter> parameters_;
  std::vector<State> states_;  // one a parameter
  CommonOptions options_;
  std::vector<std::string> kept_;
  bool squares_gradients_;
  int64_t steps_ = 0;
};

struct SgdOptions {
  double momentum = 0, dampening = 0;
  bool nesterov = false;
  CommonOptions common = {};
};
// Stochastic gradient descent with momentum, as torch.optim.SGD defines it. State: "NAME.momentum".
std::unique_ptr<Optimizer> make_sgd(std::vector<NamedParameter> parameters,
                                    const SgdOptions& options = {});

struct AdamOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  CommonOptions common = {};
};
// Adam, Kingma and Ba 2015; weight decay is added to the gradient. State: "NAME.mean", the running
// mean of gradients, and "NAME.square", that of their squares.
std::unique_ptr<Optimizer> make_adam(std::vector<NamedParameter> parameters,
                                     const AdamOptions& options = {});
// AdamW, Loshchilov and Hutter 2019: weight decay shrinks the weights themselves.
std::unique_ptr<Optimizer> make_adamw(std::vector<NamedParameter> parameters,
                                      const AdamOptions& options = {});

}  // namespace rapt::optim
