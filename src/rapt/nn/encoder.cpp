#include "rapt/nn/encoder.h"

#include "rapt/base/check.h"

namespace rapt::nn {

EncoderLayer::EncoderLayer(const LayerOptions& o, const Init& init)
    : options_(o),
      self_attention_(attention_options(o), init),
      self_attention_norm_(o.d_model, o.layer_norm_eps, o.bias, init),
      feed_forward_(o.d_model, o.dim_feedforward, o.activation,
                    o.activation_dropout.value_or(o.dropout), o.bias, init),
      feed_forward_norm_(o.d_model, o.layer_norm_eps, o.bias, init) {}

Tensor EncoderLayer::forward(const Tensor& input, const Rows& rows, const ScoreTerms& terms,
                             const Pass& pass) const {
  const Tensor x = sublayer(
      input, rows, self_attention_norm_, options_, "self_attention",
      [&](const Tensor& y, const Pass& inner) {
        return self_attention_.forward(y, rows, y, rows, terms, inner);
      },
      pass);
  return sublayer(
      x, rows, feed_forward_norm_, options_, "feed_forward",
      [&](const Tensor& y, const Pass& inner) { return feed_forward_.forward(y, rows, inner); },
      pass);
}

void EncoderLayer::visit(const Visitor& visitor, const std::string& prefix) const {
  self_attention_.visit(visitor, join_name(prefix, "self_attention"));
  self_attention_norm_.visit(visitor, join_name(prefix, "self_attention_norm"));
  feed_forward_.visit(visitor, join_name(prefix, "feed_forward"));
  feed_forward_norm_.visit(visitor, join_name(prefix, "feed_forward_norm"));
}

Encoder::Encoder(const LayerOptions& options, int64_t num_layers, bool final_norm,
                 const Init& init) {
  RAPT_CHECK(num_layers >= 0, "Encoder: expected at least 0 layers, got {}", num_layers);
  for (int64_t i = 0; i < num_layers; ++i)
    layers_.emplace_back(options, init);  // each draws weights of its own
  if (final_norm)
    norm_ =
        std::make_unique<LayerNorm>(options.d_model, options.layer_norm_eps, options.bias, init);
}

Tensor Encoder::forward(const Tensor& input, const Rows& rows, const ScoreTerms& terms,
                        const Pass& pass) const {
  Tensor x = input;
  for (size_t i = 0; i < layers_.size(); ++i)
    x = layers_[i].forward(x, rows, terms, pass.scope("layers", static_cast<int64_t>(i)));
  return norm_ ? norm_->forward(x, pass) : x;
}

void Encoder::visit(const Visitor& visitor, const std::string& prefix) const {
  for (size_t i = 0; i < layers_.size(); ++i)
    layers_[i].visit(visitor, join_name(prefix, "layers." + std::to_string(i)));
  if (norm_) norm_->visit(visitor, join_name(prefix, "norm"));
}

}  // namespace rapt::nn
