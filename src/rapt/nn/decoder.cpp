#include "rapt/nn/decoder.h"

#include "rapt/base/check.h"

namespace rapt::nn {

DecoderLayer::DecoderLayer(const LayerOptions& o, const Init& init)
    : options_(o),
      self_attention_(attention_options(o), init),
      self_attention_norm_(o.d_model, o.layer_norm_eps, o.bias, init),
      cross_attention_(attention_options(o), init),
      cross_attention_norm_(o.d_model, o.layer_norm_eps, o.bias, init),
      feed_forward_(o.d_model, o.dim_feedforward, o.activation,
                    o.activation_dropout.value_or(o.dropout), o.bias, init),
      feed_forward_norm_(o.d_model, o.layer_norm_eps, o.bias, init) {}

Tensor DecoderLayer::run(const Tensor& input, const Rows& rows, const Sublayer& self,
                         const Sublayer& cross, const Pass& pass) const {
  Tensor x = sublayer(input, rows, self_attention_norm_, options_, "self_attention", self, pass);
  x = sublayer(x, rows, cross_attention_norm_, options_, "cross_attention", cross, pass);
  return sublayer(
      x, rows, feed_forward_norm_, options_, "feed_forward",
      [&](const Tensor& y, const Pass& inner) { return feed_forward_.forward(y, rows, inner); },
      pass);
}

Tensor DecoderLayer::forward(const Tensor& x, const Rows& rows, const ScoreTerms& terms,
                             const Memory& memory, const Pass& pass) const {
  return run(
      x, rows,
      [&](const Tensor& y, const Pass& inner) {
        return self_attention_.forward(y, rows, y, rows, terms, inner);
      },
      [&](const Tensor& y, const Pass& inner) {
        return cross_attention_.forward(y, rows, memory.output, memory.rows, memory.terms, inner);
      },
      pass);
}

DecoderLayerState DecoderLayer::start(const Memory& memory, const Pass& pass) const {
  return {KeyValueCache(memory.rows.sentences()),
          cross_attention_.project(memory.output, memory.rows, pass)};
}

Tensor DecoderLayer::step(const Tensor& x, const Rows& rows, const Memory& memory,
                          DecoderLayerState& state, const Pass& pass) const {
  return run(
      x, rows,
      [&](const Tensor& y, const Pass& inner) {
        return self_attention_.step(y, rows, state.self, Mask::causal(), inner);
      },
      [&](const Tensor& y, const Pass& inner) {
        return cross_attention_.attend(y, rows, state.cross, memory.terms, inner);
      },
      pass);
}

void DecoderLayer::visit(const Visitor& visitor, const std::string& prefix) const {
  self_attention_.visit(visitor, join_name(prefix, "self_attention"));
  self_attention_norm_.visit(visitor, join_name(prefix, "self_attention_norm"));
  cross_attention_.visit(visitor, join_name(prefix, "cross_attention"));
  cross_attention_norm_.visit(visitor, join_name(prefix, "cross_attention_norm"));
  feed_forward_.visit(visitor, join_name(prefix, "feed_forward"));
  feed_forward_norm_.visit(visitor, join_name(prefix, "feed_forward_norm"));
}

Decoder::Decoder(const LayerOptions& options, int64_t num_layers, bool final_norm,
                 const Init& init) {
  RAPT_CHECK(num_layers >= 0, "Decoder: expected at least 0 layers, got {}", num_layers);
  for (int64_t i = 0; i < num_layers; ++i) layers_.emplace_back(options, init);
  if (final_norm)
    norm_ =
        std::make_unique<LayerNorm>(options.d_model, options.layer_norm_eps, options.bias, init);
}

Tensor Decoder::forward(const Tensor& input, const Rows& rows, const ScoreTerms& terms,
                        const Memory& memory, const Pass& pass) const {
  Tensor x = input;
  for (size_t i = 0; i < layers_.size(); ++i) {
    x = layers_[i].forward(x, rows, terms, memory, pass.scope("layers", static_cast<int64_t>(i)));
  }
  return norm_ ? norm_->forward(x, pass) : x;
}

std::vector<DecoderLayerState> Decoder::start(const Memory& memory, const Pass& pass) const {
  std::vector<DecoderLayerState> state;
  for (const DecoderLayer& layer : layers_) state.push_back(layer.start(memory, pass));
  return state;
}

Tensor Decoder::step(const Tensor& input, const Rows& rows, const Memory& memory,
                     std::vector<DecoderLayerState>& state, const Pass& pass) const {
  RAPT_CHECK(state.size() == layers_.size(),
             "Decoder::step: expected the state of {} layers, got {}", layers_.size(),
             state.size());
  Tensor x = input;
  for (size_t i = 0; i < layers_.size(); ++i) {
    x = layers_[i].step(x, rows, memory, state[i], pass.scope("layers", static_cast<int64_t>(i)));
  }
  return norm_ ? norm_->forward(x, pass) : x;
}

void Decoder::visit(const Visitor& visitor, const std::string& prefix) const {
  for (size_t i = 0; i < layers_.size(); ++i)
    layers_[i].visit(visitor, join_name(prefix, "layers." + std::to_string(i)));
  if (norm_) norm_->visit(visitor, join_name(prefix, "norm"));
}

}  // namespace rapt::nn
