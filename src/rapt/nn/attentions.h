// The attention weights of a whole forward pass.
#pragma once

#include <vector>

#include "rapt/tensor/tensor.h"

namespace rapt::nn {

// One tensor a layer. Weights of a query that a shorter sentence of a packed batch does not have
// are zero.
struct Attentions {
  std::vector<Tensor> encoder;  // (B, H, Ts, Ts) each
  std::vector<Tensor> decoder;  // (B, H, Tt, Tt)
  std::vector<Tensor> cross;    // (B, H, Tt, Ts)
};

}  // namespace rapt::nn
