// Layers one after another, and a norm after the last where it is wanted: what encoder and decoder
// share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rapt/nn/sublayer.h"

namespace rapt::nn {

// Throws Error, as `who`, for a negative number of layers.
void check_num_layers(const char* who, int64_t num_layers);

template <class Layer>
class Stack {
 public:
  // Each layer draws weights of its own. Throws Error, as `who`, for a negative number of layers.
  Stack(const char* who, const LayerOptions& options, int64_t num_layers, bool final_norm,
        const Init& init) {
    check_num_layers(who, num_layers);
    for (int64_t i = 0; i < num_layers; ++i) layers_.emplace_back(options, init);
    if (final_norm) norm_ = layer_norm(options, init);
  }

  // x (N, C) -> (N, C). `run(layer, x, index, pass of the layer)` gives what a layer makes of x.
  template <class Run>
  Tensor forward(Tensor x, const Pass& pass, const Run& run) const {
    for (size_t i = 0; i < layers_.size(); ++i)
      x = run(layers_[i], x, i, pass.scope("layers", static_cast<int64_t>(i)));
    return norm_ ? norm_->forward(x, pass) : x;
  }

  const std::vector<Layer>& layers() const { return layers_; }

  // layers.{i}. and the names of a layer, norm.
  void visit(const Visitor& visitor, const std::string& prefix) const {
    for (size_t i = 0; i < layers_.size(); ++i)
      layers_[i].visit(visitor, join_name(prefix, "layers." + std::to_string(i)));
    if (norm_) norm_->visit(visitor, join_name(prefix, "norm"));
  }

 private:
  std::vector<Layer> layers_;
  std::optional<LayerNorm> norm_;
};

}  // namespace rapt::nn
