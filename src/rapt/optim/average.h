// An exponential moving average of the weights: the averages of Polyak and Juditsky 1992 in the
// form that forgets.
#pragma once

#include <cstdint>
#include <vector>

#include "rapt/optim/optimizer.h"

namespace rapt::optim {

class MovingAverage {
 public:
  // Begins as the parameters are now. Update n (from 1) keeps min(decay, n / (n + 9)) of the
  // average, so that it follows the first steps, and adds the rest of the parameters: what
  // TensorFlow's ExponentialMovingAverage does with num_updates, there from 0. Throws Error for a
  // decay outside (0, 1). `parameters`: f32 or f64, each piece of memory once, as Optimizer gives
  // them.
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

// Has average and parameters exchanged while it lives.
class Averaged {
 public:
  explicit Averaged(MovingAverage* average) : average_(average) { swap(); }  // null: does nothing
  ~Averaged() { swap(); }
  Averaged(const Averaged&) = delete;
  Averaged& operator=(const Averaged&) = delete;

 private:
  void swap() {
    if (average_ != nullptr) average_->swap();
  }
  MovingAverage* average_;
};

}  // namespace rapt::optim
