#include "rapt/models/torch_kinds.h"

#include <utility>

#include "rapt/base/check.h"
#include "rapt/base/checked.h"
#include "rapt/base/limits.h"
#include "rapt/models/json.h"

#include "rapt/nn/torch/multihead_attention.h"
#include "rapt/nn/torch/scaled_dot_product_attention.h"

namespace rapt::models {
namespace {

namespace torch = nn::torch;

using Names = std::vector<std::string_view>;

Names operator+(Names a, const Names& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

const Names kLayerKeys = {"d_model",     "nhead",      "dim_feedforward",
                          "dropout",     "activation", "layer_norm_eps",
                          "batch_first", "norm_first", "bias"};

int64_t size(const JsonObject& j, const char* key) { return j.integer(key, 1, Limits().width); }

int64_t size_or(const JsonObject& j, const char* key, int64_t fallback) {
  return j.has(key) ? size(j, key) : fallback;
}

int64_t layers_or(const JsonObject& j, const char* key, int64_t fallback) {
  return j.integer_or(key, fallback, 0, Limits().layers);
}

// `fallback` has the sizes where they have a default: Transformer's.
torch::TransformerLayerOptions layer_options(const JsonObject& j,
                                             torch::TransformerLayerOptions fallback = {}) {
  torch::TransformerLayerOptions o = std::move(fallback);
  o.d_model = o.d_model > 0 ? size_or(j, "d_model", o.d_model) : size(j, "d_model");
  o.nhead = o.nhead > 0 ? size_or(j, "nhead", o.nhead) : size(j, "nhead");
  o.dim_feedforward = size_or(j, "dim_feedforward", o.dim_feedforward);
  o.dropout = j.number_or("dropout", o.dropout, 0, 1);
  o.activation = j.choice_or("activation", "relu", {"relu", "gelu", "gelu_tanh"});
  o.layer_norm_eps = j.number_or("layer_norm_eps", o.layer_norm_eps, 0, 1e6);
  o.batch_first = j.boolean_or("batch_first", o.batch_first);
  o.norm_first = j.boolean_or("norm_first", o.norm_first);
  o.bias = j.boolean_or("bias", o.bias);
  return o;
}

// Sums and products of sizes from a file.
struct Count {
  int64_t value = 0;
  Count& plus(int64_t a, int64_t b = 1) {
    value = checked_add(value, checked_mul(a, b, "parameters"), "parameters");
    return *this;
  }
};

int64_t attention_parameters(int64_t width, int64_t kdim, int64_t vdim, bool bias) {
  Count count;
  count.plus(width, width).plus(width, kdim).plus(width, vdim).plus(width, width);
  if (bias) count.plus(4, width);
  return count.value;
}

// An encoder layer has one attention and two norms, a decoder layer two and three.
int64_t layer_parameters(const torch::TransformerLayerOptions& o, int64_t attentions) {
  const int64_t C = o.d_model, F = o.dim_feedforward;
  Count count;
  count.plus(attentions, attention_parameters(C, C, C, o.bias)).plus(C, F).plus(F, C);
  count.plus(attentions + 1, C);
  if (o.bias) count.plus(F).plus(C).plus(attentions + 1, C);
  return count.value;
}

int64_t stack_parameters(const torch::TransformerLayerOptions& o, int64_t attentions,
                         int64_t num_layers, bool norm) {
  Count count;
  count.plus(num_layers, layer_parameters(o, attentions));
  if (norm) count.plus(o.bias ? 2 : 1, o.d_model);
  return count.value;
}

// --------------------------------------------------------------------------- MultiheadAttention

torch::MultiheadAttentionOptions multihead_options(const JsonObject& j) {
  torch::MultiheadAttentionOptions o;
  o.embed_dim = size(j, "embed_dim");
  o.num_heads = size(j, "num_heads");
  o.dropout = j.number_or("dropout", o.dropout, 0, 1);
  o.bias = j.boolean_or("bias", o.bias);
  o.add_bias_kv = j.boolean_or("add_bias_kv", o.add_bias_kv);
  o.add_zero_attn = j.boolean_or("add_zero_attn", o.add_zero_attn);
  if (j.has("kdim")) o.kdim = size(j, "kdim");
  if (j.has("vdim")) o.vdim = size(j, "vdim");
  o.batch_first = j.boolean_or("batch_first", o.batch_first);
  return o;
}

class MultiheadAttentionKind : public TorchKind {
 public:
  MultiheadAttentionKind(const JsonObject& j, const nn::Init& init)
      : module_(multihead_options(j), init) {}
  static int64_t count(const JsonObject& j) {
    const torch::MultiheadAttentionOptions o = multihead_options(j);
    const int64_t C = o.embed_dim;
    return Count{attention_parameters(C, o.kdim.value_or(C), o.vdim.value_or(C), o.bias)}
        .plus(o.add_bias_kv ? 2 : 0, C)
        .value;
  }
  const nn::Module* module() const override { return &module_; }
  TorchResult forward(const TorchCall& call) const override {
    const torch::MultiheadAttention::Result result =
        module_.forward(call.required("query"), call.required("key"), call.required("value"),
                        {.key_padding_mask = call.optional("key_padding_mask"),
                         .need_weights = call.flag("need_weights", true),
                         .attn_mask = call.optional("attn_mask"),
                         .average_attn_weights = call.flag("average_attn_weights", true),
                         .is_causal = call.flag("is_causal", false)},
                        call.pass());
    return {.output = result.output, .attn_weights = result.attn_weights};
  }

 private:
  torch::MultiheadAttention module_;
};

// ------------------------------------------------------------------------------ layers and stacks

class EncoderLayerKind : public TorchKind {
 public:
  EncoderLayerKind(const JsonObject& j, const nn::Init& init) : module_(layer_options(j), init) {}
  static int64_t count(const JsonObject& j) { return layer_parameters(layer_options(j), 1); }
  const nn::Module* module() const override { return &module_; }
  TorchResult forward(const TorchCall& call) const override {
    return {.output =
                module_.forward(call.required("src"),
                                {.src_mask = call.optional("src_mask"),
                                 .src_key_padding_mask = call.optional("src_key_padding_mask"),
                                 .is_causal = call.flag("is_causal", false)},
                                call.pass())};
  }

 private:
  torch::TransformerEncoderLayer module_;
};

class DecoderLayerKind : public TorchKind {
 public:
  DecoderLayerKind(const JsonObject& j, const nn::Init& init) : module_(layer_options(j), init) {}
  static int64_t count(const JsonObject& j) { return layer_parameters(layer_options(j), 2); }
  const nn::Module* module() const override { return &module_; }
  TorchResult forward(const TorchCall& call) const override {
    return {.output = module_.forward(
                call.required("tgt"), call.required("memory"),
                {.tgt_mask = call.optional("tgt_mask"),
                 .memory_mask = call.optional("memory_mask"),
                 .tgt_key_padding_mask = call.optional("tgt_key_padding_mask"),
                 .memory_key_padding_mask = call.optional("memory_key_padding_mask"),
                 .tgt_is_causal = call.flag("tgt_is_causal", false),
                 .memory_is_causal = call.flag("memory_is_causal", false)},
                call.pass())};
  }

 private:
  torch::TransformerDecoderLayer module_;
};

torch::AttentionsRequest request(const TorchCall& call, nn::Attentions& into) {
  const bool wanted = call.flag("attentions", false);
  const bool average = call.flag("average_attn_weights", false);
  return {.into = wanted ? &into : nullptr, .average_attn_weights = average};
}

int64_t num_layers(const JsonObject& j) { return j.integer("num_layers", 0, Limits().layers); }

class EncoderKind : public TorchKind {
 public:
  EncoderKind(const JsonObject& j, const nn::Init& init)
      : module_({layer_options(j), num_layers(j), j.boolean_or("norm", false)}, init) {}
  static int64_t count(const JsonObject& j) {
    j.boolean_or("enable_nested_tensor", true);  // how PyTorch computes, not what
    j.boolean_or("mask_check", true);
    return stack_parameters(layer_options(j), 1, num_layers(j), j.boolean_or("norm", false));
  }
  const nn::Module* module() const override { return &module_; }
  TorchResult forward(const TorchCall& call) const override {
    TorchResult result;
    result.output = module_.forward(call.required("src"),
                                    {.mask = call.optional("mask"),
                                     .src_key_padding_mask = call.optional("src_key_padding_mask"),
                                     .is_causal = call.flag("is_causal", false),
                                     .attentions = request(call, result.attentions)},
                                    call.pass());
    return result;
  }

 private:
  torch::TransformerEncoder module_;
};

class DecoderKind : public TorchKind {
 public:
  DecoderKind(const JsonObject& j, const nn::Init& init)
      : module_({layer_options(j), num_layers(j), j.boolean_or("norm", false)}, init) {}
  static int64_t count(const JsonObject& j) {
    return stack_parameters(layer_options(j), 2, num_layers(j), j.boolean_or("norm", false));
  }
  const nn::Module* module() const override { return &module_; }
  TorchResult forward(const TorchCall& call) const override {
    TorchResult result;
    result.output =
        module_.forward(call.required("tgt"), call.required("memory"),
                        {.tgt_mask = call.optional("tgt_mask"),
                         .memory_mask = call.optional("memory_mask"),
                         .tgt_key_padding_mask = call.optional("tgt_key_padding_mask"),
                         .memory_key_padding_mask = call.optional("memory_key_padding_mask"),
                         .tgt_is_causal = call.flag("tgt_is_causal", false),
                         .memory_is_causal = call.flag("memory_is_causal", false),
                         .attentions = request(call, result.attentions)},
                        call.pass());
    return result;
  }

 private:
  torch::TransformerDecoder module_;
};

// ------------------------------------------------------------------------------------ Transformer

torch::TransformerOptions transformer_options(const JsonObject& j) {
  torch::TransformerOptions o;
  for (const char* key : {"custom_encoder", "custom_decoder"}) {
    if (j.has(key)) j.refuse(key, "null (a module of one's own cannot stand in JSON)");
  }
  const torch::TransformerLayerOptions layer =
      layer_options(j, {.d_model = o.d_model, .nhead = o.nhead});
  o.d_model = layer.d_model;
  o.nhead = layer.nhead;
  o.num_encoder_layers = layers_or(j, "num_encoder_layers", o.num_encoder_layers);
  o.num_decoder_layers = layers_or(j, "num_decoder_layers", o.num_decoder_layers);
  o.dim_feedforward = layer.dim_feedforward;
  o.dropout = layer.dropout;
  o.activation = layer.activation;
  o.layer_norm_eps = layer.layer_norm_eps;
  o.batch_first = layer.batch_first;
  o.norm_first = layer.norm_first;
  o.bias = layer.bias;
  return o;
}

class TransformerKind : public TorchKind {
 public:
  TransformerKind(const JsonObject& j, const nn::Init& init)
      : module_(transformer_options(j), init) {}
  static int64_t count(const JsonObject& j) {
    const torch::TransformerOptions o = transformer_options(j);
    const torch::TransformerLayerOptions layer =
        layer_options(j, {.d_model = o.d_model, .nhead = o.nhead});
    return Count{stack_parameters(layer, 1, o.num_encoder_layers, true)}
        .plus(stack_parameters(layer, 2, o.num_decoder_layers, true))
        .value;
  }
  const nn::Module* module() const override { return &module_; }
  TorchResult forward(const TorchCall& call) const override {
    TorchResult result;
    result.output =
        module_.forward(call.required("src"), call.required("tgt"),
                        {.src_mask = call.optional("src_mask"),
                         .tgt_mask = call.optional("tgt_mask"),
                         .memory_mask = call.optional("memory_mask"),
                         .src_key_padding_mask = call.optional("src_key_padding_mask"),
                         .tgt_key_padding_mask = call.optional("tgt_key_padding_mask"),
                         .memory_key_padding_mask = call.optional("memory_key_padding_mask"),
                         .src_is_causal = call.flag("src_is_causal", false),
                         .tgt_is_causal = call.flag("tgt_is_causal", false),
                         .memory_is_causal = call.flag("memory_is_causal", false),
                         .attentions = request(call, result.attentions)},
                        call.pass());
    return result;
  }

 private:
  torch::Transformer module_;
};

// ------------------------------------------------------------------------------- attention alone

class AttentionKind : public TorchKind {
 public:
  AttentionKind(const JsonObject&, const nn::Init&) {}
  static int64_t count(const JsonObject&) { return 0; }
  const nn::Module* module() const override { return nullptr; }
  TorchResult forward(const TorchCall& call) const override {
    torch::ScaledDotProductAttentionOptions arguments{
        .attn_mask = call.optional("attn_mask"),
        .dropout_p = call.number("dropout_p", 0, 0, 1),
        .is_causal = call.flag("is_causal", false),
        .enable_gqa = call.flag("enable_gqa", false)};
    if (call.has("scale")) arguments.scale = call.number("scale", 0, -1e30, 1e30);
    return {.output = torch::scaled_dot_product_attention(
                call.required("query"), call.required("key"), call.required("value"), arguments,
                call.pass())};
  }
};

template <class Kind>
std::unique_ptr<TorchKind> build(const JsonObject& config, const nn::Init& init) {
  return std::make_unique<Kind>(config, init);
}

template <class Kind>
TorchEntry entry(std::string_view model_type, Names constructor, Names required, Names optional,
                 Names arguments) {
  return {model_type,           std::move(constructor), std::move(required), std::move(optional),
          std::move(arguments), &Kind::count,           &build<Kind>};
}

}  // namespace

const std::vector<TorchEntry>& torch_entries() {
  static const Names stack = {"attentions", "average_attn_weights"};
  static const std::vector<TorchEntry> entries = {
      entry<MultiheadAttentionKind>("torch.nn.MultiheadAttention",
                                    {"embed_dim", "num_heads", "dropout", "bias", "add_bias_kv",
                                     "add_zero_attn", "kdim", "vdim", "batch_first"},
                                    {"query", "key", "value"}, {"key_padding_mask", "attn_mask"},
                                    {"need_weights", "average_attn_weights", "is_causal"}),
      entry<EncoderLayerKind>("torch.nn.TransformerEncoderLayer", kLayerKeys, {"src"},
                              {"src_mask", "src_key_padding_mask"}, {"is_causal"}),
      entry<EncoderKind>(
          "torch.nn.TransformerEncoder",
          kLayerKeys + Names{"num_layers", "norm", "enable_nested_tensor", "mask_check"}, {"src"},
          {"mask", "src_key_padding_mask"}, Names{"is_causal"} + stack),
      entry<DecoderLayerKind>(
          "torch.nn.TransformerDecoderLayer", kLayerKeys, {"tgt", "memory"},
          {"tgt_mask", "memory_mask", "tgt_key_padding_mask", "memory_key_padding_mask"},
          {"tgt_is_causal", "memory_is_causal"}),
      entry<DecoderKind>(
          "torch.nn.TransformerDecoder", kLayerKeys + Names{"num_layers", "norm"},
          {"tgt", "memory"},
          {"tgt_mask", "memory_mask", "tgt_key_padding_mask", "memory_key_padding_mask"},
          Names{"tgt_is_causal", "memory_is_causal"} + stack),
      entry<TransformerKind>("torch.nn.Transformer",
                             kLayerKeys + Names{"num_encoder_layers", "num_decoder_layers",
                                                "custom_encoder", "custom_decoder"},
                             {"src", "tgt"},
                             {"src_mask", "tgt_mask", "memory_mask", "src_key_padding_mask",
                              "tgt_key_padding_mask", "memory_key_padding_mask"},
                             Names{"src_is_causal", "tgt_is_causal", "memory_is_causal"} + stack),
      entry<AttentionKind>("rapt.scaled_dot_product_attention", {}, {"query", "key", "value"},
                           {"attn_mask"}, {"dropout_p", "is_causal", "scale", "enable_gqa"}),
  };
  return entries;
}

}  // namespace rapt::models
