#include "rapt/models/vision_transformer.h"

#include <algorithm>

#include "rapt/base/check.h"
#include "rapt/models/config_checks.h"
#include "rapt/nn/positions.h"
#include "rapt/ops/elementwise.h"
#include "rapt/ops/embedding.h"
#include "rapt/ops/select.h"
#include "rapt/tensor/dispatch.h"

namespace rapt::models {
namespace {

int64_t patches_a_side(const VisionTransformerConfig& c) { return c.image_size / c.patch_size; }

VisionTransformerConfig checked(VisionTransformerConfig config) {
  config.check();
  if (config.max_patches == 0) config.max_patches = patches_a_side(config) * patches_a_side(config);
  return config;
}

}  // namespace

void VisionTransformerConfig::check() const {
  check_positive("image_size", image_size);
  check_positive("patch_size", patch_size);
  check_positive("channels", channels);
  check_positive("num_classes", num_classes);
  check_layers(d_model, nhead, dim_feedforward, num_layers);
  RAPT_CHECK(image_size % patch_size == 0, "patch_size {} does not divide image_size {}",
             patch_size, image_size);
  const int64_t patches = patches_a_side(*this) * patches_a_side(*this);
  RAPT_CHECK(max_patches == 0 || max_patches >= patches,
             "max_patches: expected at least the {} patches of an image, got {}", patches,
             max_patches);
  check_activation(activation);
  check_probability("dropout", dropout);
}

Tensor patches_of(const Tensor& pixels, int64_t patch_size) {
  RAPT_CHECK(pixels.rank() == 4 && pixels.contiguous() && patch_size >= 1 &&
                 pixels.dim(2) % patch_size == 0 && pixels.dim(3) % patch_size == 0,
             "patches_of: expected (B, channels, height, width) in whole patches of {}, got {}",
             patch_size, pixels.shape().text());
  const int64_t B = pixels.dim(0), channels = pixels.dim(1), P = patch_size;
  const int64_t down = pixels.dim(2) / P, across = pixels.dim(3) / P, width = pixels.dim(3);
  Tensor patches = Tensor::empty({B * down * across, channels * P * P}, pixels.dtype());
  dispatch_float(pixels.dtype(), "patches_of", [&](auto tag) {
    using T = decltype(tag);
    const T* from = pixels.data<T>();
    T* to = patches.data<T>();
    for (int64_t b = 0; b < B; ++b) {
      for (int64_t i = 0; i < down * across; ++i) {
        const int64_t top = i / across * P, left = i % across * P;
        for (int64_t row = 0; row < channels * P; ++row) {
          const int64_t line = (b * channels + row / P) * down * P + top + row % P;
          to = std::copy_n(from + line * width + left, P, to);
        }
      }
    }
  });
  return patches;
}

VisionTransformer::VisionTransformer(const VisionTransformerConfig& config, const nn::Init& init)
    : config_(checked(config)),
      embedding_(config.channels * config.patch_size * config.patch_size, config.d_model, true,
                 init),
      positions_(init.normal({config_.max_patches, config.d_model}, 0.02)),
      encoder_({.d_model = config.d_model,
                .nhead = config.nhead,
                .dim_feedforward = config.dim_feedforward,
                .dropout = config.dropout,
                .activation = config.activation,
                .layer_norm_eps = config.layer_norm_eps,
                .norm_first = true},
               config.num_layers, true, init),
      head_(init.normal({config.num_classes, config.d_model}, 0.02), false, init) {}

Tensor VisionTransformer::forward(const Tensor& pixels, const Pass& pass) const {
  const int64_t size = config_.image_size;
  RAPT_CHECK(pixels.rank() == 4 && pixels.dim(1) == config_.channels && pixels.dim(2) == size &&
                 pixels.dim(3) == size,
             "VisionTransformer: expected pixels (B, {}, {}, {}), got {}", config_.channels, size,
             size, pixels.shape().text());
  const int64_t B = pixels.dim(0), side = patches_a_side(config_);
  const Rows rows = Rows::equal(B, side * side);
  const DType type = pass.compute_type(pixels.dtype());
  const Tensor patches = embedding_.forward(patches_of(pixels, config_.patch_size).to(type), pass);
  const Tensor places =
      embedding(nn::position_ids(rows), pass.use(positions_), 1, Tensor(), rows, {}, type);
  const Tensor x =
      encoder_.forward(add(patches, places), rows, Mask(), pass.scope("encoder"));  // (B P, C)
  return head_.forward(mean_rows(x, rows), pass);
}

void VisionTransformer::visit(const nn::Visitor& visitor, const std::string& prefix) const {
  embedding_.visit(visitor, nn::join_name(prefix, "embedding"));
  visitor({nn::join_name(prefix, "positions.weight"), positions_, 0, positions_.shape()[0]});
  encoder_.visit(visitor, nn::join_name(prefix, "encoder"));
  head_.visit(visitor, nn::join_name(prefix, "head"));
}

}  // namespace rapt::models
