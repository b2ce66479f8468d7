#include "rapt/nn/encoder.h"

#include "rapt/nn/recompute.h"

namespace rapt::nn {

EncoderLayer::EncoderLayer(const LayerOptions& o, const Init& init)
    : options_(o),
      self_attention_(attention_options(o), init),
      self_attention_norm_(layer_norm(o, init)),
      feed_forward_(feed_forward(o, init)),
      feed_forward_norm_(layer_norm(o, init)) {}

Tensor EncoderLayer::forward(const Tensor& x, const Rows& rows, const ScoreTerms& terms,
                             const Pass& pass) const {
  if (!pass.recomputes(x)) return run(x, rows, terms, pass);
  return recompute(
      x, [=, this, again = pass.without_recomputing()] { return run(x, rows, terms, again); });
}

Tensor EncoderLayer::run(const Tensor& input, const Rows& rows, const ScoreTerms& terms,
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

Encoder::Encoder(const LayerOptions& options, int64_t num_layers, bool final_norm, const Init& init)
    : stack_("Encoder", options, num_layers, final_norm, init) {}

Tensor Encoder::forward(const Tensor& input, const Rows& rows, const ScoreTerms& terms,
                        const Pass& pass) const {
  return stack_.forward(input, pass,
                        [&](const EncoderLayer& layer, const Tensor& x, size_t, const Pass& inner) {
                          return layer.forward(x, rows, terms, inner);
                        });
}

void Encoder::visit(const Visitor& visitor, const std::string& prefix) const {
  stack_.visit(visitor, prefix);
}

}  // namespace rapt::nn
