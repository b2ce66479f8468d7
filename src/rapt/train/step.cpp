#include "rapt/train/step.h"

#include <cmath>

#include "rapt/base/check.h"
#include "rapt/tensor/tape.h"

namespace rapt::train {

StepResult take_step(const std::function<Loss(const Pass& pass)>& loss, optim::Optimizer& optimizer,
                     Gradients& gradients, const StepOptions& options) {
  gradients.clear();
  StepResult result;
  result.loss = loss(Pass::train(gradients, options.seed, options.step, options.compute_type));
  if (result.loss.count == 0) return result;
  if (!std::isfinite(result.loss.mean())) {
    fail(
        ErrorKind::diverged,
        "training diverged: the loss of step {} is not finite; lower the learning rate or lengthen "
        "the warm-up",
        options.step + 1);
  }
  backward(result.loss.sum);
  result.loss.sum = result.loss.sum.detach();
  const optim::StepResult update =
      optimizer.step(gradients, 1 / static_cast<double>(result.loss.count), options.rate);
  if (!update.applied) {
    fail(ErrorKind::diverged,
         "training diverged: the gradient of {} is not finite in step {}; lower the learning rate",
         update.bad_parameter, options.step + 1);
  }
  result.updated = true;
  return result;
}

}  // namespace rapt::train
