#include "rapt/models/layouts/layouts.h"

namespace rapt::models::layouts {

const Layout& torch() {
  // clang-format off
  static const Layout layout{"torch", {
      {"src_emb.weight", {"source_embedding.weight"}},
      {"tgt_emb.weight", {"target_embedding.weight"}},
      {"transformer.encoder.layers.{i}.self_attn.in_proj_weight", {"encoder.layers.{i}.self_attention.query.weight", "encoder.layers.{i}.self_attention.key.weight", "encoder.layers.{i}.self_attention.value.weight"}},
      {"transformer.encoder.layers.{i}.self_attn.in_proj_bias", {"encoder.layers.{i}.self_attention.query.bias", "encoder.layers.{i}.self_attention.key.bias", "encoder.layers.{i}.self_attention.value.bias"}},
      {"transformer.encoder.layers.{i}.self_attn.out_proj.weight", {"encoder.layers.{i}.self_attention.output.weight"}},
      {"transformer.encoder.layers.{i}.self_attn.out_proj.bias", {"encoder.layers.{i}.self_attention.output.bias"}},
      {"transformer.encoder.layers.{i}.linear1.weight", {"encoder.layers.{i}.feed_forward.linear1.weight"}},
      {"transformer.encoder.layers.{i}.linear1.bias", {"encoder.layers.{i}.feed_forward.linear1.bias"}},
      {"transformer.encoder.layers.{i}.linear2.weight", {"encoder.layers.{i}.feed_forward.linear2.weight"}},
      {"transformer.encoder.layers.{i}.linear2.bias", {"encoder.layers.{i}.feed_forward.linear2.bias"}},
      {"transformer.encoder.layers.{i}.norm1.weight", {"encoder.layers.{i}.self_attention_norm.weight"}},
      {"transformer.encoder.layers.{i}.norm1.bias", {"encoder.layers.{i}.self_attention_norm.bias"}},
      {"transformer.encoder.layers.{i}.norm2.weight", {"encoder.layers.{i}.feed_forward_norm.weight"}},
      {"transformer.encoder.layers.{i}.norm2.bias", {"encoder.layers.{i}.feed_forward_norm.bias"}},
      {"transformer.encoder.norm.weight", {"encoder.norm.weight"}},
      {"transformer.encoder.norm.bias", {"encoder.norm.bias"}},
      {"transformer.decoder.layers.{i}.self_attn.in_proj_weight", {"decoder.layers.{i}.self_attention.query.weight", "decoder.layers.{i}.self_attention.key.weight", "decoder.layers.{i}.self_attention.value.weight"}},
      {"transformer.decoder.layers.{i}.self_attn.in_proj_bias", {"decoder.layers.{i}.self_attention.query.bias", "decoder.layers.{i}.self_attention.key.bias", "decoder.layers.{i}.self_attention.value.bias"}},
      {"transformer.decoder.layers.{i}.self_attn.out_proj.weight", {"decoder.layers.{i}.self_attention.output.weight"}},
      {"transformer.decoder.layers.{i}.self_attn.out_proj.bias", {"decoder.layers.{i}.self_attention.output.bias"}},
      {"transformer.decoder.layers.{i}.multihead_attn.in_proj_weight", {"decoder.layers.{i}.cross_attention.query.weight", "decoder.layers.{i}.cross_attention.key.weight", "decoder.layers.{i}.cross_attention.value.weight"}},
      {"transformer.decoder.layers.{i}.multihead_attn.in_proj_bias", {"decoder.layers.{i}.cross_attention.query.bias", "decoder.layers.{i}.cross_attention.key.bias", "decoder.layers.{i}.cross_attention.value.bias"}},
      {"transformer.decoder.layers.{i}.multihead_attn.out_proj.weight", {"decoder.layers.{i}.cross_attention.output.weight"}},
      {"transformer.decoder.layers.{i}.multihead_attn.out_proj.bias", {"decoder.layers.{i}.cross_attention.output.bias"}},
      {"transformer.decoder.layers.{i}.linear1.weight", {"decoder.layers.{i}.feed_forward.linear1.weight"}},
      {"transformer.decoder.layers.{i}.linear1.bias", {"decoder.layers.{i}.feed_forward.linear1.bias"}},
      {"transformer.decoder.layers.{i}.linear2.weight", {"decoder.layers.{i}.feed_forward.linear2.weight"}},
      {"transformer.decoder.layers.{i}.linear2.bias", {"decoder.layers.{i}.feed_forward.linear2.bias"}},
      {"transformer.decoder.layers.{i}.norm1.weight", {"decoder.layers.{i}.self_attention_norm.weight"}},
      {"transformer.decoder.layers.{i}.norm1.bias", {"decoder.layers.{i}.self_attention_norm.bias"}},
      {"transformer.decoder.layers.{i}.norm2.weight", {"decoder.layers.{i}.cross_attention_norm.weight"}},
      {"transformer.decoder.layers.{i}.norm2.bias", {"decoder.layers.{i}.cross_attention_norm.bias"}},
      {"transformer.decoder.layers.{i}.norm3.weight", {"decoder.layers.{i}.feed_forward_norm.weight"}},
      {"transformer.decoder.layers.{i}.norm3.bias", {"decoder.layers.{i}.feed_forward_norm.bias"}},
      {"transformer.decoder.norm.weight", {"decoder.norm.weight"}},
      {"transformer.decoder.norm.bias", {"decoder.norm.bias"}},
      {"projection.weight", {"projection.weight"}},
      {"projection.bias", {"projection.bias"}},
  }, {"pos_emb.pe"}};
  // clang-format on
  return layout;
}

}  // namespace rapt::models::layouts
