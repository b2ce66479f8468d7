// Functions of single elements, and dropout.
//
// Arguments taken by value may lend their memory to the result: pass std::move(x) where x is not
// used again.
#pragma once

#include "rapt/tensor/pass.h"
#include "rapt/tensor/tape.h"

namespace rapt {

// a + b and a * b, of one shape and type; throw Error otherwise.
Tensor add(const Tensor& a, const Tensor& b);
Tensor multiply(const Tensor& a, const Tensor& b);
// factor * x
Tensor scale(const Tensor& x, double factor);

Tensor relu(Tensor x);              // max(x, 0)
Tensor gelu(const Tensor& x);       // x (1 + erf(x / sqrt 2)) / 2, Hendrycks and Gimpel 2016
Tensor gelu_tanh(const Tensor& x);  // its tanh form, as GPT-2 has it

// Dropout (Srivastava et al. 2014) of x (N, ..), whose rows are those of `rows`: kept elements are
// scaled by 1 / (1 - probability). Which are dropped follows from the site, the sample, the
// position and the channel.
Tensor dropout(Tensor x, const Rows& rows, const kernels::Dropout& site);

// dropout(x) + residual.
Tensor dropout_add(Tensor x, const Tensor& residual, const Rows& rows,
                   const kernels::Dropout& site);

}  // namespace rapt
