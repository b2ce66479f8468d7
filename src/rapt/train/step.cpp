#include "rapt/train/step.h"

#include <cmath>

#include "rapt/base/check.h"
#include "rapt/tensor/tape.h"

namespace rapt::train {

StepResult try_step(int64_t micro_batches,
                    const std::function<Loss(int64_t micro_batch, const Pass& pass)>& loss,
                    optim::Optimizer& optimizer, Gradients& gradients, const StepOptions& options) {
  RAPT_CHECK(micro_batches >= 1, "step: expected at least 1 micro-batch, got {}", micro_batches);
  gradients.clear();
  StepResult result;
  const Pass pass({.training = true,
                   .seed = options.seed,
                   .step = options.step,
                   .gradients = &gradients,
                   .compute_type = options.compute_type,
                   .recompute = options.recompute});
  double sum = 0;
  for (int64_t micro = 0; micro < micro_batches; ++micro) {
    Loss part = loss(micro, pass);
    if (part.count == 0) {
      if (!result.loss.sum.defined()) result.loss.sum = part.sum.detach();
      continue;
    }
    sum += part.sum.item();
    if (!std::isfinite(sum)) result.spoilt = "the loss";
    if (result.spoilt.empty()) backward(part.sum);
    result.loss.sum = part.sum.detach();
    result.loss.count += part.count;
    if (!result.spoilt.empty()) return result;
  }
  if (result.loss.count == 0) return result;
  if (micro_batches > 1) result.loss.sum = Tensor::from(std::vector<double>{sum}, {1});
  const optim::StepResult update =
      optimizer.step(gradients, 1 / static_cast<double>(result.loss.count), options.rate);
  result.norm = update.norm;
  result.updated = update.applied;
  if (!update.bad_parameter.empty()) result.spoilt = "the gradient of " + update.bad_parameter;
  return result;
}

StepResult take_step(const std::function<Loss(const Pass& pass)>& loss, optim::Optimizer& optimizer,
                     Gradients& gradients, const StepOptions& options) {
  StepResult result = try_step(
      1, [&](int64_t, const Pass& pass) { return loss(pass); }, optimizer, gradients, options);
  if (!result.spoilt.empty()) fail_diverged(result.spoilt, options.step);
  return result;
}

void fail_diverged(const std::string& spoilt, uint64_t step) {
  fail(ErrorKind::diverged,
       "training diverged: {} is not finite in step {}; lower the learning rate or lengthen the "
       "warm-up",
       spoilt, step + 1);
}

}  // namespace rapt::train
