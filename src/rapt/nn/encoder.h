// The encoder: layers of self-attention and feed-forward, Vaswani et al. 2017, section 3.1.
#pragma once

#include <vector>

#include "rapt/nn/attention.h"
#include "rapt/nn/feed_forward.h"
#include "rapt/nn/stack.h"

namespace rapt::nn {

class EncoderLayer : public Module {
 public:
  EncoderLayer(const LayerOptions& options, const Init& init);

  Tensor forward(const Tensor& x, const Rows& rows, const ScoreTerms& terms,
                 const Pass& pass) const;  // (N, C) -> (N, C)

  void visit(const Visitor& visitor, const std::string& prefix) const override;

 private:
  Tensor run(const Tensor& x, const Rows& rows, const ScoreTerms& terms, const Pass& pass) const;

  LayerOptions options_;
  Attention self_attention_;
  LayerNorm self_attention_norm_;
  FeedForward feed_forward_;
  LayerNorm feed_forward_norm_;
};

class Encoder : public Module {
 public:
  // `final_norm`: a norm after the last layer. Throws Error for a negative number of layers.
  Encoder(const LayerOptions& options, int64_t num_layers, bool final_norm, const Init& init);

  Tensor forward(const Tensor& x, const Rows& rows, const ScoreTerms& terms,
                 const Pass& pass) const;  // (N, C) -> (N, C)

  void visit(const Visitor& visitor, const std::string& prefix) const override;

 private:
  Stack<EncoderLayer> stack_;
};

}  // namespace rapt::nn
