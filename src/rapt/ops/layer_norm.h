// Layer normalisation, Ba et al. 2016, alone and fused with the residual connection before it.
#pragma once

#include "rapt/tensor/pass.h"
#include "rapt/tensor/tape.h"

namespace rapt {

// x (N, C), gain (C), shift (C) or undefined -> (N, C), with x of bf16 gain and shift of f32: (x -
// mean) / sqrt(variance + epsilon) * gain + shift over each row, with the biased variance. Throws
// Error where widths differ.
Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& shift, double epsilon);

// layer_norm(residual + dropout(x)) in one pass: the end of a sublayer with the norm after it.
Tensor residual_layer_norm(const Tensor& x, const Tensor& residual, const Rows& rows,
                           const kernels::Dropout& site, const Tensor& gain, const Tensor& shift,
                           double epsilon);

}  // namespace rapt
