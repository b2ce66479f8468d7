#include "rapt/nn/decoder.h"

#include "rapt/base/check.h"
#include "rapt/base/checked.h"
#include "rapt/nn/recompute.h"

namespace rapt::nn {

DecoderLayer::DecoderLayer(const LayerOptions& o, const Init& init)
    : options_(o),
      self_attention_(attention_options(o), init),
      self_attention_norm_(layer_norm(o, init)),
      cross_attention_(attention_options(o), init),
      cross_attention_norm_(layer_norm(o, init)),
      feed_forward_(feed_forward(o, init)),
      feed_forward_norm_(layer_norm(o, init)) {}

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
  if (!pass.recomputes(x)) return run_whole(x, rows, terms, memory, pass);
  return recompute(x, [=, this, again = pass.without_recomputing()] {
    return run_whole(x, rows, terms, memory, again);
  });
}

Tensor DecoderLayer::run_whole(const Tensor& x, const Rows& rows, const ScoreTerms& terms,
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

DecoderLayerState DecoderLayer::start(const Memory& memory, const Pass& pass, int64_t beams) const {
  return {KeyValueCache(checked_mul(memory.rows.sentences(), beams, "Decoder::start")),
          cross_attention_.project(memory.output, memory.rows, pass)};
}

Tensor DecoderLayer::step(const Tensor& x, const Rows& rows, const Rows& sources,
                          const Memory& memory, DecoderLayerState& state, const Pass& pass) const {
  return run(
      x, rows,
      [&](const Tensor& y, const Pass& inner) {
        return self_attention_.step(y, rows, state.self, Mask::causal(), inner);
      },
      [&](const Tensor& y, const Pass& inner) {
        return cross_attention_.attend(y, sources, state.cross, memory.terms, inner);
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

Decoder::Decoder(const LayerOptions& options, int64_t num_layers, bool final_norm, const Init& init)
    : stack_("Decoder", options, num_layers, final_norm, init) {}

Tensor Decoder::forward(const Tensor& input, const Rows& rows, const ScoreTerms& terms,
                        const Memory& memory, const Pass& pass) const {
  return stack_.forward(input, pass,
                        [&](const DecoderLayer& layer, const Tensor& x, size_t, const Pass& inner) {
                          return layer.forward(x, rows, terms, memory, inner);
                        });
}

std::vector<DecoderLayerState> Decoder::start(const Memory& memory, const Pass& pass,
                                              int64_t beams) const {
  std::vector<DecoderLayerState> state;
  for (const DecoderLayer& layer : stack_.layers())
    state.push_back(layer.start(memory, pass, beams));
  return state;
}

Tensor Decoder::step(const Tensor& input, const Rows& rows, const Rows& sources,
                     const Memory& memory, std::vector<DecoderLayerState>& state,
                     const Pass& pass) const {
  RAPT_CHECK(state.size() == stack_.layers().size(),
             "Decoder::step: expected the state of {} layers, got {}", stack_.layers().size(),
             state.size());
  return stack_.forward(
      input, pass, [&](const DecoderLayer& layer, const Tensor& x, size_t i, const Pass& inner) {
        return layer.step(x, rows, sources, memory, state[i], inner);
      });
}

void Decoder::visit(const Visitor& visitor, const std::string& prefix) const {
  stack_.visit(visitor, prefix);
}

}  // namespace rapt::nn
