// An exponential moving average of the weights, Polyak and Juditsky 1992 in the form that decays.
#pragma once

#include <cstdint>
#include <vector>

#include "rapt/optim/optimizer.h"

namespace rapt::optim {

class MovingAverage {
 public:
  // Begins as the parameters are now. Update n (from 1) keeps min(decay, n / (n + 9)) of the
  // average, so that it follows the first steps, and adds the rest of the parameters. Throws Error
  // for a decay outside (0, 1). `parameters`: each piece of memory once, as Optimizer gives them.
  MovingAverage(std::vector<NamedParameter> parameters, double decay);

  void update();  // after a step

  // Exchanges average and parameters: twice is as before. In between, a bf16 twin is what it was.
  void swap();

  // All state: "updates", and for each parameter "NAME", its average. The tensors share memory.
  std::vector<StateTensor> state() const;
  // Copies a state that state() made. Throws Error, and changes nothing, where a tensor is missing
  // or of another shape or type.
  void load_state(const std::vector<StateTensor>& state);

 private:
  std::vector<NamedParameter> parameters_;
  std::vector<Tensor> averages_;  // one a parameter
  double decay_;
  int64_t updates_ = 0;
};

}  // namespace rapt::optim
