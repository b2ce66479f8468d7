// The projection to the vocabulary and its cross-entropy as one op, in chunks of rows: the logits
// never stand whole.
#pragma once

#include "rapt/ops/cross_entropy.h"

namespace rapt {

// cross_entropy(linear(x, w, b), targets, options), rows without a target left out: x (N, C), w (V,
// C), b (V) or undefined, targets (N) i32. Where gradients are wanted they are computed with the
// loss, a chunk at a time, and kept until the backward: x's size and w's, where the logits would
// take N x V. `chunk`: rows at a time; 0: as many as make 96 MiB of logits. Throws Error as the two
// do.
Loss projection_loss(const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& targets,
                     const CrossEntropyOptions& options = {}, int64_t chunk = 0);

}  // namespace rapt
