// Linear layers: y = x w^T + b.
#pragma once

#include "rapt/tensor/tape.h"

namespace rapt {

// x (N, in), w (out, in), b (out) or undefined -> (N, out); x and w of bf16 take b of f32. Where a
// gradient is wanted, rows may be grouped freely; otherwise the bits of a row do not depend on the
// other rows. Throws Error where widths differ.
Tensor linear(const Tensor& x, const Tensor& w, const Tensor& b = {});

// The same without gradients, sums of bf16 in f32: logits, which are compared with each other.
// Throws Error also where something is recorded.
Tensor precise_linear(const Tensor& x, const Tensor& w, const Tensor& b = {});

}  // namespace rapt
