// The residual connection around each sublayer, with the norm after it (Vaswani et al. 2017) or
// before it (Xiong et al. 2020).
#pragma once

#include <functional>
#include <optional>

#include "rapt/nn/attention.h"
#include "rapt/nn/feed_forward.h"
#include "rapt/nn/layer_norm.h"

namespace rapt::nn {

// The options that encoder and decoder layers share; names and meanings are those of
// torch.nn.TransformerEncoderLayer, plus the widths of a head.
struct LayerOptions {
  int64_t d_model = 512;
  int64_t nhead = 8;
  int64_t d_qk = 0, d_v = 0;  // of a head; 0: d_model / nhead
  int64_t dim_feedforward = 2048;
  double dropout = 0.1;  // of sublayer outputs; of the other two where they are not set
  std::optional<double> attention_dropout = {};   // of attention weights
  std::optional<double> activation_dropout = {};  // of hidden units
  Activation activation = "relu";
  double layer_norm_eps = 1e-5;
  bool norm_first = false;
  bool bias = true;
};

// The parts that a layer is made of.
AttentionOptions attention_options(const LayerOptions& options);
LayerNorm layer_norm(const LayerOptions& options, const Init& init);
FeedForward feed_forward(const LayerOptions& options, const Init& init);

// norm_first: x + dropout(f(norm(x))); otherwise norm(x + dropout(f(x))). x (N, C) -> (N, C).
// `pass` is the layer's; the dropout's site is "name.output".
Tensor sublayer(const Tensor& x, const Rows& rows, const LayerNorm& norm,
                const LayerOptions& options, const char* name,
                const std::function<Tensor(const Tensor& x, const Pass& pass)>& f,
                const Pass& pass);

}  // namespace rapt::nn
