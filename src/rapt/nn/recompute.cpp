#include "rapt/nn/recompute.h"

#include <utility>

#include "rapt/tensor/tape.h"

namespace rapt::nn {

Tensor recompute(const Tensor& x, std::function<Tensor()> layer) {
  const Tensor y = layer().detach();  // what the layer saved is freed here
  return record(y, {x},
                [layer = std::move(layer)](const Tensor& dy, Sink& d) { d.replay(layer, dy); });
}

}  // namespace rapt::nn
