#include "rapt/models/language_model.h"

#include "rapt/models/config_checks.h"
#include "rapt/nn/positions.h"
#include "rapt/ops/elementwise.h"
#include "rapt/ops/linear.h"

namespace rapt::models {
namespace {

LanguageModelConfig checked(const LanguageModelConfig& config) {
  config.check();
  return config;
}

nn::Embedding small_table(int64_t V, int64_t C, const nn::Init& init) {
  return nn::Embedding(init.normal({V, C}, 0.02));
}

}  // namespace

void LanguageModelConfig::check() const {
  check_positive("vocab_size", vocab_size);
  check_positive("max_len", max_len);
  check_layers(d_model, nhead, dim_feedforward, num_layers);
  check_activation(activation);
  check_probability("dropout", dropout);
  check_probability("embedding_dropout", embedding_dropout);
  check_probability("attention_dropout", attention_dropout);
  check_probability("activation_dropout", activation_dropout);
}

LanguageModel::LanguageModel(const LanguageModelConfig& config, const nn::Init& init)
    : config_(checked(config)),
      embedding_(small_table(config.vocab_size, config.d_model, init)),
      positions_(small_table(config.max_len, config.d_model, init)),
      encoder_({.d_model = config.d_model,
                .nhead = config.nhead,
                .dim_feedforward = config.dim_feedforward,
                .dropout = config.dropout,
                .attention_dropout = config.attention_dropout,
                .activation_dropout = config.activation_dropout,
                .activation = config.activation,
                .layer_norm_eps = config.layer_norm_eps,
                .norm_first = config.norm_first},
               config.num_layers, config.final_norm, init) {}

Tensor LanguageModel::forward(const Tensor& ids, const Rows& rows, const Pass& pass) const {
  const Pass at = pass.scope("embedding");
  const Tensor tokens = embedding_.forward(ids, rows, {}, 1, 0, at);  // (N, C)
  const Tensor places = positions_.forward(nn::position_ids(rows), rows, {}, 1, 0, at);
  const Tensor x = dropout(add(tokens, places), rows, at.dropout(config_.embedding_dropout));
  return encoder_.forward(x, rows, config_.causal ? Mask::causal() : Mask(), pass.scope("encoder"));
}

Tensor LanguageModel::logits(const Tensor& hidden, const Pass& pass) const {
  return linear(hidden, pass.use_matrix(embedding_.table()));
}

Loss LanguageModel::loss(const Tensor& hidden, const Tensor& targets,
                         const CrossEntropyOptions& options, const Pass& pass) const {
  return projection_loss(hidden, pass.use_matrix(embedding_.table()), {}, targets, options);
}

void LanguageModel::visit(const nn::Visitor& visitor, const std::string& prefix) const {
  embedding_.visit(visitor, nn::join_name(prefix, "embedding"));
  positions_.visit(visitor, nn::join_name(prefix, "positions"));
  encoder_.visit(visitor, nn::join_name(prefix, "encoder"));
  embedding_.visit(visitor, nn::join_name(prefix, "head"));
}

}  // namespace rapt::models
