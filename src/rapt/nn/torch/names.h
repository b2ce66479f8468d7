// From our names of parameters to those of torch.nn.
#pragma once

#include "rapt/nn/module.h"

namespace rapt::nn::torch {

// Which projection of an attention a parameter of ours belongs to, if any.
enum class AttentionPart { none, in, out };
AttentionPart attention_part(const std::string& name);

// Visits an attention, a layer or a stack of rapt::nn by official names: the stacked in-projection
// as one in_proj_weight, projections of inputs with different widths as q_proj_weight and so on.
enum class LayerKind { encoder, decoder };
void visit_by_official_names(const Module& module, LayerKind kind, const Visitor& visitor,
                             const std::string& prefix);

}  // namespace rapt::nn::torch
