// The position-wise feed-forward network, Vaswani et al. 2017, section 3.3, as one op.
#pragma once

#include "rapt/tensor/rows.h"
#include "rapt/tensor/tape.h"

namespace rapt {

// An affine map: w (out, in), b (out) or undefined.
struct Affine {
  Tensor w, b;
};

// linear(dropout(f(linear(x, first))), second): x (N, in), first (hidden, in), second (out, hidden)
// -> (N, out); the rows of x are those of `rows`. The hidden layer is kept once for the backward:
// before f, which is computed again, or for relu after it, where its slope shows. In f32 and f64
// results and gradients are those of the ops one after the other, bit for bit; bf16 rounds once
// where those round twice. Throws Error where widths or types differ.
Tensor feed_forward(const Tensor& x, const Affine& first, kernels::Activation f, const Rows& rows,
                    const kernels::Dropout& site, const Affine& second);

}  // namespace rapt
