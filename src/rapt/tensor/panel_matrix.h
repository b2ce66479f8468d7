// A matrix of a model that is frozen for inference, in f32 and in the order in which products of a
// CPU with tiles read it (kernels/panels.h).
#pragma once

#include <cstdint>
#include <memory>

#include "rapt/tensor/tensor.h"

namespace rapt {

class PanelMatrix {
 public:
  // w (out, in) of f32, reordered. Null where the CPU has no tiles, and where a number is not
  // finite.
  static std::shared_ptr<const PanelMatrix> of(const Tensor& w);

  static constexpr int64_t kOutputs = 32;  // of a panel: where ranges of outputs may begin

  int64_t out() const { return out_; }
  int64_t in() const { return in_; }
  const float* panels() const { return static_cast<const float*>(block_.get()); }

 private:
  PanelMatrix(int64_t out, int64_t in, std::shared_ptr<void> block)
      : out_(out), in_(in), block_(std::move(block)) {}

  int64_t out_, in_;
  std::shared_ptr<void> block_;
};

}  // namespace rapt
