#include "rapt/nn/torch/layers.h"

#include "rapt/nn/torch/initialisation.h"
#include "rapt/nn/torch/names.h"
#include "rapt/nn/torch/stack.h"

namespace rapt::nn::torch {
namespace {

constexpr const char* kEncoderLayer = "TransformerEncoderLayer";
constexpr const char* kDecoderLayer = "TransformerDecoderLayer";

}  // namespace

TransformerEncoderLayer::TransformerEncoderLayer(const TransformerLayerOptions& options,
                                                 const Init& init)
    : options_(options), dtype_(init.dtype), layer_(layer_options(kEncoderLayer, options), init) {
  if (init.rng != nullptr) draw_in_projections(layer_, *init.rng);
}

Tensor TransformerEncoderLayer::forward(const Tensor& src,
                                        const TransformerEncoderLayerArguments& arguments,
                                        const Pass& pass) const {
  const EncoderCall call(kEncoderLayer, options_, dtype_, src,
                         {.attn_mask_name = "src_mask",
                          .attn_mask = arguments.src_mask,
                          .key_padding_mask_name = "src_key_padding_mask",
                          .key_padding_mask = arguments.src_key_padding_mask,
                          .is_causal = arguments.is_causal});
  return call.result(layer_.forward(call.src.rows, call.rows, call.terms, pass));
}

void TransformerEncoderLayer::visit(const Visitor& visitor, const std::string& prefix) const {
  visit_by_official_names(layer_, LayerKind::encoder, visitor, prefix);
}

TransformerDecoderLayer::TransformerDecoderLayer(const TransformerLayerOptions& options,
                                                 const Init& init)
    : options_(options), dtype_(init.dtype), layer_(layer_options(kDecoderLayer, options), init) {
  if (init.rng != nullptr) draw_in_projections(layer_, *init.rng);
}

Tensor TransformerDecoderLayer::forward(const Tensor& tgt, const Tensor& memory,
                                        const TransformerDecoderLayerArguments& arguments,
                                        const Pass& pass) const {
  const DecoderCall call(kDecoderLayer, options_, dtype_, tgt, memory, arguments);
  return call.result(layer_.forward(call.tgt.rows, call.rows, call.terms, call.memory, pass));
}

void TransformerDecoderLayer::visit(const Visitor& visitor, const std::string& prefix) const {
  visit_by_official_names(layer_, LayerKind::decoder, visitor, prefix);
}

}  // namespace rapt::nn::torch
