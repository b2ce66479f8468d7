// One optimizer step of any model.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "rapt/ops/cross_entropy.h"
#include "rapt/optim/optimizer.h"
#include "rapt/tensor/pass.h"

namespace rapt::train {

struct StepResult {
  Loss loss;             // of all micro-batches
  bool updated = false;  // false where nothing was counted, and where something was not finite
  double norm = 0;       // of the gradient of the mean loss, before clipping; NaN if not computed
  // What was not finite, "the loss" or "the gradient of NAME"; the model is then as it was.
  std::string spoilt{};
};

// What decides a step beside the batch. `step` counts from 0; with the seed it keys dropout.
struct StepOptions {
  double rate = 0;
  uint64_t seed = 0, step = 0;
  // Unset: the type of the parameters. bf16: they are f32 and have twins, see nn::make_twins.
  std::optional<DType> compute_type{};
  bool recompute = false;  // layers are computed again in the backward pass: see PassOptions
};

// Forward and backward of every micro-batch, then one update with the gradient of the mean loss
// over all that they count: as one batch with all their sentences would. `loss` is called once for
// each, from 0, with a pass that trains. Where a loss or a gradient is not finite the model stays
// as it was, and the result says what it was.
StepResult try_step(int64_t micro_batches,
                    const std::function<Loss(int64_t micro_batch, const Pass& pass)>& loss,
                    optim::Optimizer& optimizer, Gradients& gradients, const StepOptions& options);

// The same for one batch. Throws Error (diverged) where the loss or a gradient is not finite.
StepResult take_step(const std::function<Loss(const Pass& pass)>& loss, optim::Optimizer& optimizer,
                     Gradients& gradients, const StepOptions& options);

// Throws Error (diverged) about a step, counted from 0, whose result is `spoilt`.
[[noreturn]] void fail_diverged(const std::string& spoilt, uint64_t step);

}  // namespace rapt::train
