#include "rapt/models/layouts/layouts.h"

namespace rapt::models::layouts {

const Layout& hand_built() {
  // clang-format off
  static const Layout layout{"hand_built", {
      {"encoder.src_emb.weight", {"source_embedding.weight"}},
      {"decoder.tgt_emb.weight", {"target_embedding.weight"}},
      {"encoder.layers.{i}.enc_self_attn.W_Q.weight", {"encoder.layers.{i}.self_attention.query.weight"}},
      {"encoder.layers.{i}.enc_self_attn.W_Q.bias", {"encoder.layers.{i}.self_attention.query.bias"}},
      {"encoder.layers.{i}.enc_self_attn.W_K.weight", {"encoder.layers.{i}.self_attention.key.weight"}},
      {"encoder.layers.{i}.enc_self_attn.W_K.bias", {"encoder.layers.{i}.self_attention.key.bias"}},
      {"encoder.layers.{i}.enc_self_attn.W_V.weight", {"encoder.layers.{i}.self_attention.value.weight"}},
      {"encoder.layers.{i}.enc_self_attn.W_V.bias", {"encoder.layers.{i}.self_attention.value.bias"}},
      {"encoder.layers.{i}.enc_self_attn.fc.weight", {"encoder.layers.{i}.self_attention.output.weight"}},
      {"encoder.layers.{i}.enc_self_attn.fc.bias", {"encoder.layers.{i}.self_attention.output.bias"}},
      {"encoder.layers.{i}.enc_self_attn.layerNorm.weight", {"encoder.layers.{i}.self_attention_norm.weight"}},
      {"encoder.layers.{i}.enc_self_attn.layerNorm.bias", {"encoder.layers.{i}.self_attention_norm.bias"}},
      {"encoder.layers.{i}.pos_ffn.fc.0.weight", {"encoder.layers.{i}.feed_forward.linear1.weight"}},
      {"encoder.layers.{i}.pos_ffn.fc.0.bias", {"encoder.layers.{i}.feed_forward.linear1.bias"}},
      {"encoder.layers.{i}.pos_ffn.fc.2.weight", {"encoder.layers.{i}.feed_forward.linear2.weight"}},
      {"encoder.layers.{i}.pos_ffn.fc.2.bias", {"encoder.layers.{i}.feed_forward.linear2.bias"}},
      {"encoder.layers.{i}.pos_ffn.layerNorm.weight", {"encoder.layers.{i}.feed_forward_norm.weight"}},
      {"encoder.layers.{i}.pos_ffn.layerNorm.bias", {"encoder.layers.{i}.feed_forward_norm.bias"}},
      {"decoder.layers.{i}.dec_self_attn.W_Q.weight", {"decoder.layers.{i}.self_attention.query.weight"}},
      {"decoder.layers.{i}.dec_self_attn.W_Q.bias", {"decoder.layers.{i}.self_attention.query.bias"}},
      {"decoder.layers.{i}.dec_self_attn.W_K.weight", {"decoder.layers.{i}.self_attention.key.weight"}},
      {"decoder.layers.{i}.dec_self_attn.W_K.bias", {"decoder.layers.{i}.self_attention.key.bias"}},
      {"decoder.layers.{i}.dec_self_attn.W_V.weight", {"decoder.layers.{i}.self_attention.value.weight"}},
      {"decoder.layers.{i}.dec_self_attn.W_V.bias", {"decoder.layers.{i}.self_attention.value.bias"}},
      {"decoder.layers.{i}.dec_self_attn.fc.weight", {"decoder.layers.{i}.self_attention.output.weight"}},
      {"decoder.layers.{i}.dec_self_attn.fc.bias", {"decoder.layers.{i}.self_attention.output.bias"}},
      {"decoder.layers.{i}.dec_self_attn.layerNorm.weight", {"decoder.layers.{i}.self_attention_norm.weight"}},
      {"decoder.layers.{i}.dec_self_attn.layerNorm.bias", {"decoder.layers.{i}.self_attention_norm.bias"}},
      {"decoder.layers.{i}.dec_enc_attn.W_Q.weight", {"decoder.layers.{i}.cross_attention.query.weight"}},
      {"decoder.layers.{i}.dec_enc_attn.W_Q.bias", {"decoder.layers.{i}.cross_attention.query.bias"}},
      {"decoder.layers.{i}.dec_enc_attn.W_K.weight", {"decoder.layers.{i}.cross_attention.key.weight"}},
      {"decoder.layers.{i}.dec_enc_attn.W_K.bias", {"decoder.layers.{i}.cross_attention.key.bias"}},
      {"decoder.layers.{i}.dec_enc_attn.W_V.weight", {"decoder.layers.{i}.cross_attention.value.weight"}},
      {"decoder.layers.{i}.dec_enc_attn.W_V.bias", {"decoder.layers.{i}.cross_attention.value.bias"}},
      {"decoder.layers.{i}.dec_enc_attn.fc.weight", {"decoder.layers.{i}.cross_attention.output.weight"}},
      {"decoder.layers.{i}.dec_enc_attn.fc.bias", {"decoder.layers.{i}.cross_attention.output.bias"}},
      {"decoder.layers.{i}.dec_enc_attn.layerNorm.weight", {"decoder.layers.{i}.cross_attention_norm.weight"}},
      {"decoder.layers.{i}.dec_enc_attn.layerNorm.bias", {"decoder.layers.{i}.cross_attention_norm.bias"}},
      {"decoder.layers.{i}.pos_ffn.fc.0.weight", {"decoder.layers.{i}.feed_forward.linear1.weight"}},
      {"decoder.layers.{i}.pos_ffn.fc.0.bias", {"decoder.layers.{i}.feed_forward.linear1.bias"}},
      {"decoder.layers.{i}.pos_ffn.fc.2.weight", {"decoder.layers.{i}.feed_forward.linear2.weight"}},
      {"decoder.layers.{i}.pos_ffn.fc.2.bias", {"decoder.layers.{i}.feed_forward.linear2.bias"}},
      {"decoder.layers.{i}.pos_ffn.layerNorm.weight", {"decoder.layers.{i}.feed_forward_norm.weight"}},
      {"decoder.layers.{i}.pos_ffn.layerNorm.bias", {"decoder.layers.{i}.feed_forward_norm.bias"}},
      {"projection.weight", {"projection.weight"}},
      {"projection.bias", {"projection.bias"}},
  }, {"encoder.pos_emb.pe", "decoder.pos_emb.pe"}};
  // clang-format on
  return layout;
}

}  // namespace rapt::models::layouts
