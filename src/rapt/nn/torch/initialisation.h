// First weights as torch.nn draws them.
#pragma once

#include "rapt/nn/module.h"

namespace rapt::nn::torch {

// torch.nn.MultiheadAttention: the in-projections of every attention in `module` by Xavier uniform
// (Glorot and Bengio 2010), the stacked one as one matrix, the biases of its projections 0.
void draw_in_projections(const Module& module, Rng& rng);

// torch.nn.Transformer: the same for every matrix of `stack`.
void draw_all_matrices(const Module& stack, Rng& rng);

}  // namespace rapt::nn::torch
