// The decoder: layers of causal self-attention, cross-attention and feed-forward, Vaswani et al.
// 2017, section 3.1.
#pragma once

#include <vector>

#include "rapt/nn/attention.h"
#include "rapt/nn/feed_forward.h"
#include "rapt/nn/stack.h"

namespace rapt::nn {

// What a decoder layer's cross-attention looks at: the encoder's output (Ns, C) and its sentences.
struct Memory {
  Tensor output;
  Rows rows;
  ScoreTerms terms;  // which source tokens the target may see
};

// What one layer keeps between decoding steps.
struct DecoderLayerState {
  KeyValueCache self;
  KeyValues cross;
};

class DecoderLayer : public Module {
 public:
  DecoderLayer(const LayerOptions& options, const Init& init);

  // x (Nt, C) -> (Nt, C). `terms` are those of the self-attention, causality included.
  Tensor forward(const Tensor& x, const Rows& rows, const ScoreTerms& terms, const Memory& memory,
                 const Pass& pass) const;

  // Decoding: start() projects the memory once; step() takes the new tokens of each sentence (Nt,
  // C) -> (Nt, C). With `beams` for each sentence of the memory, `rows` are those of the beams, and
  // `sources` the same tokens by sentences, whose beams share its keys and values.
  DecoderLayerState start(const Memory& memory, const Pass& pass, int64_t beams = 1) const;
  Tensor step(const Tensor& x, const Rows& rows, const Rows& sources, const Memory& memory,
              DecoderLayerState& state, const Pass& pass) const;

  void visit(const Visitor& visitor, const std::string& prefix) const override;

 private:
  using Sublayer = std::function<Tensor(const Tensor& x, const Pass& pass)>;
  Tensor run(const Tensor& x, const Rows& rows, const Sublayer& self, const Sublayer& cross,
             const Pass& pass) const;
  Tensor run_whole(const Tensor& x, const Rows& rows, const ScoreTerms& terms, const Memory& memory,
                   const Pass& pass) const;

  LayerOptions options_;
  Attention self_attention_;
  LayerNorm self_attention_norm_;
  Attention cross_attention_;
  LayerNorm cross_attention_norm_;
  FeedForward feed_forward_;
  LayerNorm feed_forward_norm_;
};

class Decoder : public Module {
 public:
  Decoder(const LayerOptions& options, int64_t num_layers, bool final_norm, const Init& init);

  Tensor forward(const Tensor& x, const Rows& rows, const ScoreTerms& terms, const Memory& memory,
                 const Pass& pass) const;

  // As those of a layer: the new tokens (Nt, C) -> (Nt, C), `state` being of all layers. Throws
  // Error where it is not.
  std::vector<DecoderLayerState> start(const Memory& memory, const Pass& pass,
                                       int64_t beams = 1) const;
  Tensor step(const Tensor& x, const Rows& rows, const Rows& sources, const Memory& memory,
              std::vector<DecoderLayerState>& state, const Pass& pass) const;

  void visit(const Visitor& visitor, const std::string& prefix) const override;

 private:
  Stack<DecoderLayer> stack_;
};

}  // namespace rapt::nn
