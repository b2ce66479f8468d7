// Cross-entropy over the vocabulary.
#pragma once

#include <cstdint>

#include "rapt/tensor/tape.h"

namespace rapt {

// A loss is a sum and what it counts: it is divided once an optimizer step, by the tokens of all
// its micro-batches. Nothing counted means nothing to learn: sum 0, gradients 0.
struct Loss {
  Tensor sum;  // (1); f32 for logits of bf16
  int64_t count = 0;
  double mean() const { return count == 0 ? 0 : sum.item() / static_cast<double>(count); }
};

struct CrossEntropyOptions {
  int32_t ignore_index = -100;  // rows with this target count neither in the sum nor in the count
  double label_smoothing = 0;   // in [0, 1]: this share of the target is spread over all classes
};

// logits (N, V), targets (N) i32. Takes the logits' memory for their gradient if nobody else holds
// it: pass std::move(logits). Throws Error for a target outside [0, V) that is not ignore_index,
// naming the row.
Loss cross_entropy(Tensor logits, const Tensor& targets, const CrossEntropyOptions& options = {});

}  // namespace rapt
