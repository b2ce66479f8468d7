// Vision Transformer, Dosovitskiy et al. 2021: an image as a sequence of patches, learned
// positions, an encoder, and a head on the mean of its tokens.
#pragma once

#include "rapt/nn/encoder.h"

namespace rapt::models {

struct VisionTransformerConfig {
  int64_t image_size = 224;  // pixels, square
  int64_t patch_size = 16;
  int64_t channels = 3;
  int64_t num_classes = 1000;
  int64_t d_model = 768;
  int64_t nhead = 12;
  int64_t dim_feedforward = 3072;
  int64_t num_layers = 12;
  int64_t max_patches = 0;  // positions; 0: as many as an image has patches
  std::string activation = "gelu";
  double layer_norm_eps = 1e-5;
  double dropout = 0.0;

  // Throws Error that names the field that cannot be, or those that contradict each other.
  void check() const;
};

// Patches of images: pixels (B, channels, size, size), rows first -> (B P, channels patch patch),
// in the order of a convolution's weight. Throws Error where a patch does not divide the image.
Tensor patches_of(const Tensor& pixels, int64_t patch_size);

class VisionTransformer : public nn::Module {
 public:
  VisionTransformer(const VisionTransformerConfig& config, const nn::Init& init);

  // pixels (B, channels, size, size) of the parameters' type -> logits (B, num_classes).
  Tensor forward(const Tensor& pixels, const Pass& pass) const;

  // embedding.weight (C, channels patch patch), embedding.bias, positions.weight, encoder.,
  // head.weight.
  void visit(const nn::Visitor& visitor, const std::string& prefix) const override;
  const VisionTransformerConfig& config() const { return config_; }

 private:
  VisionTransformerConfig config_;
  nn::Linear embedding_;
  Parameter positions_;  // (max_patches, C)
  nn::Encoder encoder_;
  nn::Linear head_;
};

}  // namespace rapt::models
