#include "rapt/nn/torch/stack.h"

#include "rapt/base/check.h"

namespace rapt::nn::torch {

LayerOptions layer_options(const char* who, const TransformerLayerOptions& o) {
  const auto positive = [&](const char* name, int64_t value) {
    RAPT_CHECK(value >= 1, "{}: expected {} of at least 1, got {}", who, name, value);
  };
  positive("d_model", o.d_model);
  positive("nhead", o.nhead);
  positive("dim_feedforward", o.dim_feedforward);
  RAPT_CHECK(o.d_model % o.nhead == 0, "{}: expected an nhead that divides d_model {}, got {}", who,
             o.d_model, o.nhead);
  RAPT_CHECK(o.dropout >= 0 && o.dropout < 1, "{}: expected dropout in [0, 1), got {}", who,
             o.dropout);
  RAPT_CHECK(o.layer_norm_eps > 0, "{}: expected layer_norm_eps above 0, got {}", who,
             o.layer_norm_eps);
  return {.d_model = o.d_model,
          .nhead = o.nhead,
          .dim_feedforward = o.dim_feedforward,
          .dropout = o.dropout,
          .activation = o.activation,
          .layer_norm_eps = o.layer_norm_eps,
          .norm_first = o.norm_first,
          .bias = o.bias};
}

EncoderCall::EncoderCall(const char* who, const TransformerLayerOptions& options, DType dtype,
                         const Tensor& source, MaskArguments masks)
    : layout{is_batched(who, "src", source), options.batch_first},
      src(as_rows(who, "src", source, layout, options.d_model, dtype)),
      rows(src.sentences()),
      sizes{src.N, options.nhead, src.T, src.T, layout.batched, dtype} {
  masks.who = who;
  terms = score_terms(masks, sizes);
}

DecoderCall::DecoderCall(const char* who, const TransformerLayerOptions& options, DType dtype,
                         const Tensor& target, const Tensor& encoded,
                         const TransformerDecoderLayerArguments& arguments)
    : layout{is_batched(who, "tgt", target), options.batch_first},
      tgt(as_rows(who, "tgt", target, layout, options.d_model, dtype)) {
  const Sequence from = as_rows(who, "memory", encoded, layout, options.d_model, dtype);
  RAPT_CHECK(from.N == tgt.N, "{}: expected a memory with the batch size of tgt, {}, got {}", who,
             tgt.N, from.N);
  const int64_t T = tgt.T, S = from.T;
  sizes = {tgt.N, options.nhead, T, T, layout.batched, dtype};
  memory_sizes = {tgt.N, options.nhead, T, S, layout.batched, dtype};
  rows = tgt.sentences(query_position(T, S));
  terms = score_terms({.who = who,
                       .attn_mask_name = "tgt_mask",
                       .attn_mask = arguments.tgt_mask,
                       .key_padding_mask_name = "tgt_key_padding_mask",
                       .key_padding_mask = arguments.tgt_key_padding_mask,
                       .is_causal_name = "tgt_is_causal",
                       .is_causal = arguments.tgt_is_causal},
                      sizes);
  memory = {from.rows, from.sentences(key_position(T, S)),
            score_terms({.who = who,
                         .attn_mask_name = "memory_mask",
                         .attn_mask = arguments.memory_mask,
                         .key_padding_mask_name = "memory_key_padding_mask",
                         .key_padding_mask = arguments.memory_key_padding_mask,
                         .is_causal_name = "memory_is_causal",
                         .is_causal = arguments.memory_is_causal},
                        memory_sizes)};
}

}  // namespace rapt::nn::torch
