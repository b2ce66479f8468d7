// Tensors by name: what goes into a run of a module or model, and what comes out.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rapt/tensor/tensor.h"

namespace rapt::models {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

struct RunOptions {
  bool attentions = false;  // also the weights of all attentions (of a model of our own)
  bool gradients = false;   // also the gradients; needs d_output
  bool training = false;    // dropout acts
  uint64_t seed = 0;
};

}  // namespace rapt::models
