// The products of a linear layer on tensors, for the ops that contain one. Shapes were checked:
// x (N, in), w (out, in), b (out) or undefined, y and dy (N, out).
#pragma once

#include "rapt/kernels/types.h"
#include "rapt/tensor/tape.h"

namespace rapt {

// Of a product of (M, K) and (K, N).
double product_flops(int64_t M, int64_t N, int64_t K);

// y = x w^T + b, of x's type, or of the one that goes with it where accuracy is kept.
Tensor linear_product(const Tensor& x, const Tensor& w, const Tensor& b, kernels::RowPolicy policy);
Tensor precise_linear_product(const Tensor& x, const Tensor& w, const Tensor& b,
                              kernels::RowPolicy policy);
// dx = dy w, or dx += dy w.
void linear_input_gradient(const Tensor& dy, const Tensor& w, Tensor dx, bool accumulate);
// The gradients of w, input `weight` of an op, and of b, the input after it, where they are wanted.
void linear_parameter_gradients(const Tensor& dy, const Tensor& x, int weight, Sink& d);

}  // namespace rapt
