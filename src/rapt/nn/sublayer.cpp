#include "rapt/nn/sublayer.h"

#include "rapt/ops/elementwise.h"

namespace rapt::nn {

AttentionOptions attention_options(const LayerOptions& o) {
  return {.d_model = o.d_model,
          .nhead = o.nhead,
          .d_qk = o.d_qk,
          .d_v = o.d_v,
          .dropout = o.attention_dropout.value_or(o.dropout),
          .bias = o.bias};
}

LayerNorm layer_norm(const LayerOptions& o, const Init& init) {
  return {o.d_model, o.layer_norm_eps, o.bias, init};
}

FeedForward feed_forward(const LayerOptions& o, const Init& init) {
  return {o.d_model,    o.dim_feedforward,
          o.activation, o.activation_dropout.value_or(o.dropout),
          o.bias,       init};
}

Tensor sublayer(const Tensor& x, const Rows& rows, const LayerNorm& norm,
                const LayerOptions& options, const char* name,
                const std::function<Tensor(const Tensor& x, const Pass& pass)>& f,
                const Pass& pass) {
  const Pass inner = pass.scope(name), output = inner.scope("output");
  if (options.norm_first)
    return dropout_add(f(norm.forward(x, inner), inner), x, rows, output.dropout(options.dropout));
  return norm.forward_residual(f(x, inner), x, rows, options.dropout, output);
}

}  // namespace rapt::nn
