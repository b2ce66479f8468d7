// One optimizer step of any model.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "rapt/ops/cross_entropy.h"
#include "rapt/optim/optimizer.h"
#include "rapt/tensor/pass.h"

namespace rapt::train {

struct StepResult {
  Loss loss;
  bool updated = false;  // false where nothing was counted
};

// What decides a step beside the batch. `step` counts from 0; with the seed it keys dropout.
struct StepOptions {
  double rate = 0;
  uint64_t seed = 0, step = 0;
  // Unset: the type of the parameters. bf16: they are f32 and have twins, see nn::make_twins.
  std::optional<DType> compute_type{};
};

// Forward, backward, update with the gradient of the mean loss. `loss` is called once, with a pass
// that trains. Throws Error (diverged) where the loss or a gradient is not finite; the model is
// then as it was.
StepResult take_step(const std::function<Loss(const Pass& pass)>& loss, optim::Optimizer& optimizer,
                     Gradients& gradients, const StepOptions& options);

}  // namespace rapt::train
