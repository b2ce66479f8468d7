// Layers that keep their input alone for the backward pass and are computed again then.
#pragma once

#include <functional>

#include "rapt/tensor/tensor.h"

namespace rapt::nn {

// What `layer` gives, recorded as made from x, which is recorded. The backward calls `layer` again
// and goes back through what it gives then: to x, and to all else that it was made from. What
// `layer` refers to must live until then.
Tensor recompute(const Tensor& x, std::function<Tensor()> layer);

}  // namespace rapt::nn
