// The products of a linear layer on tensors, for the ops that contain one. Shapes were checked:
// x (N, in), w (out, in), b (out) or undefined, y and dy (N, out).
#pragma once

#include "rapt/tensor/tape.h"

namespace rapt {

// Of a product of (M, K) and (K, N).
double product_flops(int64_t M, int64_t N, int64_t K);

// y = x w^T + b. Where it is not `recorded` the bits of a row do not depend on the other rows.
Tensor linear_product(const Tensor& x, const Tensor& w, const Tensor& b, bool recorded);
// The same, not recorded, of the type that goes with x's where accuracy is kept.
Tensor precise_linear_product(const Tensor& x, const Tensor& w, const Tensor& b);
// dx = dy w, or dx += dy w.
void linear_input_gradient(const Tensor& dy, const Tensor& w, Tensor dx, bool accumulate);
// The gradients of w, input `weight` of an op, and of b, the input after it, where they are wanted.
void linear_parameter_gradients(const Tensor& dy, const Tensor& x, int weight, Sink& d);

}  // namespace rapt
