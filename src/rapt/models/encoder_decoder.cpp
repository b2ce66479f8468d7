#include "rapt/models/encoder_decoder.h"

#include <algorithm>
#include <cmath>

#include "rapt/base/check.h"
#include "rapt/base/checked.h"
#include "rapt/base/limits.h"
#include "rapt/base/names.h"
#include "rapt/models/config_checks.h"
#include "rapt/nn/positions.h"
#include "rapt/nn/torch/initialisation.h"
#include "rapt/tensor/dispatch.h"

namespace rapt::models {
namespace {

nn::LayerOptions layer_options(const EncoderDecoderConfig& c) {
  return {.d_model = c.d_model,
          .nhead = c.nhead,
          .d_qk = c.d_qk,
          .d_v = c.d_v,
          .dim_feedforward = c.dim_feedforward,
          .dropout = c.dropout,
          .attention_dropout = c.attention_dropout,
          .activation_dropout = c.activation_dropout,
          .activation = c.activation,
          .layer_norm_eps = c.layer_norm_eps,
          .norm_first = c.norm_first};
}

EncoderDecoderConfig checked(const EncoderDecoderConfig& config) {
  config.check();
  return config;
}

// A table that is scaled by sqrt(C) begins with deviation 1 / sqrt(C): its sums with the positions
// are those of a table that is not scaled, and it can be the projection as well.
void shrink_for_scaling(const nn::Embedding& embedding, int64_t C) {
  Tensor table = embedding.table().value();
  const double deviation = 1 / std::sqrt(static_cast<double>(C));
  dispatch_float(table.dtype(), "Init", [&](auto tag) {
    using T = decltype(tag);
    T* x = table.data<T>();
    for (int64_t i = 0; i < table.numel(); ++i) x[i] *= static_cast<T>(deviation);
  });
}

constexpr NameTable<TieEmbeddings, 3> kTies{
    {{TieEmbeddings::none, "none"}, {TieEmbeddings::two, "two"}, {TieEmbeddings::three, "three"}}};

}  // namespace

std::string_view name_of(TieEmbeddings tie) { return name_in(kTies, tie); }

TieEmbeddings parse_tie_embeddings(std::string_view name) {
  return value_in(kTies, name, "tie_embeddings");
}

EncoderDecoderConfig EncoderDecoderConfig::hand_built(int64_t src_vocab_size,
                                                      int64_t tgt_vocab_size) {
  EncoderDecoderConfig config = torch(src_vocab_size, tgt_vocab_size);
  config.layout = "hand_built";
  config.d_qk = config.d_v = 64;
  config.final_norm = false;
  config.dropout = 0;
  return config;
}

EncoderDecoderConfig EncoderDecoderConfig::torch(int64_t src_vocab_size, int64_t tgt_vocab_size) {
  EncoderDecoderConfig config;
  config.layout = "torch";
  config.src_vocab_size = src_vocab_size;
  config.tgt_vocab_size = tgt_vocab_size;
  return config;
}

void EncoderDecoderConfig::check() const {
  const Limits limits;
  const auto within = [](const char* name, int64_t value, int64_t low, int64_t high) {
    RAPT_CHECK(value >= low && value <= high, "{}: expected {} to {}, got {}", name, low, high,
               value);
  };
  within("src_vocab_size", src_vocab_size, 1, limits.vocabulary);
  within("tgt_vocab_size", tgt_vocab_size, 1, limits.vocabulary);
  within("d_model", d_model, 1, limits.width);
  within("nhead", nhead, 1, limits.width);
  within("d_qk", d_qk, 0, limits.width);
  within("d_v", d_v, 0, limits.width);
  within("dim_feedforward", dim_feedforward, 1, limits.width);
  within("num_encoder_layers", num_encoder_layers, 0, limits.layers);
  within("num_decoder_layers", num_decoder_layers, 0, limits.layers);
  within("max_len", max_len, 1, limits.positions);
  within("pad_id", pad_id, 0, std::min(src_vocab_size, tgt_vocab_size) - 1);
  within("start_id", start_id, 0, tgt_vocab_size - 1);
  within("end_id", end_id, 0, tgt_vocab_size - 1);
  within("max_len x d_model", max_len * d_model, 1, int64_t{1} << 30);
  RAPT_CHECK(layout == "hand_built" || layout == "torch" || layout == "rapt",
             "layout: expected hand_built, torch or rapt, got \"{}\"", layout);
  check_activation(activation);
  check_probability("position_dropout", position_dropout);
  check_probability("dropout", dropout);
  check_probability("attention_dropout", attention_dropout.value_or(0));
  check_probability("activation_dropout", activation_dropout.value_or(0));
  RAPT_CHECK(layer_norm_eps > 0 && layer_norm_eps < 1,
             "layer_norm_eps: expected a number in (0, 1), got {}", layer_norm_eps);
  RAPT_CHECK(
      tie_embeddings != TieEmbeddings::three || src_vocab_size == tgt_vocab_size,
      "tie_embeddings: three needs one vocabulary, got src_vocab_size {} and tgt_vocab_size {}",
      src_vocab_size, tgt_vocab_size);
  const nn::AttentionOptions widths = nn::checked(
      nn::AttentionOptions{.d_model = d_model, .nhead = nhead, .d_qk = d_qk, .d_v = d_v});
  RAPT_CHECK(layout != "torch" || (nhead * widths.d_qk == d_model && nhead * widths.d_v == d_model),
             "layout torch: expected nhead x d_qk and nhead x d_v to be d_model {}, got {} and {}",
             d_model, nhead * widths.d_qk, nhead * widths.d_v);
}

int64_t EncoderDecoderConfig::count_parameters() const {
  const auto times = [](int64_t a, int64_t b) { return checked_mul(a, b, "count_parameters"); };
  const auto sum = [](std::initializer_list<int64_t> terms) {
    int64_t total = 0;
    for (const int64_t term : terms) total = checked_add(total, term, "count_parameters");
    return total;
  };
  const nn::AttentionOptions widths = nn::checked(
      nn::AttentionOptions{.d_model = d_model, .nhead = nhead, .d_qk = d_qk, .d_v = d_v});
  const int64_t C = d_model, heads = times(nhead, sum({widths.d_qk, widths.d_qk, widths.d_v}));
  const int64_t attention = sum({times(heads, C + 1), times(times(nhead, widths.d_v), C), C});
  const int64_t feed_forward = sum({times(times(2, C), dim_feedforward), dim_feedforward, C}),
                norm = 2 * C;
  const int64_t embeddings =
      tie_embeddings == TieEmbeddings::three ? tgt_vocab_size : src_vocab_size + tgt_vocab_size;
  const int64_t projection = tie_embeddings == TieEmbeddings::none ? times(tgt_vocab_size, C) : 0;
  return sum({times(embeddings, C), projection, projection_bias ? tgt_vocab_size : 0,
              final_norm ? 2 * norm : 0,
              times(num_encoder_layers, sum({attention, feed_forward, 2 * norm})),
              times(num_decoder_layers, sum({attention, attention, feed_forward, 3 * norm}))});
}

EncoderDecoder::EncoderDecoder(const EncoderDecoderConfig& config, const nn::Init& init)
    : config_(checked(config)),
      positions_(nn::sinusoidal_positions(config_.max_len, config_.d_model, init.dtype)),
      source_embedding_(config_.src_vocab_size, config_.d_model, init),
      target_embedding_(config_.tie_embeddings == TieEmbeddings::three
                            ? source_embedding_
                            : nn::Embedding(config_.tgt_vocab_size, config_.d_model, init)),
      encoder_(layer_options(config_), config_.num_encoder_layers, config_.final_norm, init),
      decoder_(layer_options(config_), config_.num_decoder_layers, config_.final_norm, init),
      projection_(
          config_.tie_embeddings == TieEmbeddings::none
              ? nn::Linear(config_.d_model, config_.tgt_vocab_size, config_.projection_bias, init)
              : nn::Linear(target_embedding_.table(), config_.projection_bias, init)) {
  if (config_.scale_embeddings && init.rng != nullptr) {
    shrink_for_scaling(source_embedding_, config_.d_model);
    if (config_.tie_embeddings != TieEmbeddings::three)
      shrink_for_scaling(target_embedding_, config_.d_model);
  }
  if (config_.layout == "torch" && init.rng != nullptr) {
    nn::torch::draw_all_matrices(encoder_, *init.rng);
    nn::torch::draw_all_matrices(decoder_, *init.rng);
  }
}

Tensor EncoderDecoder::embed(const nn::Embedding& embedding, const Tensor& ids, const Rows& rows,
                             const Pass& pass) const {
  const double factor =
      config_.scale_embeddings ? std::sqrt(static_cast<double>(config_.d_model)) : 1;
  return embedding.forward(ids, rows, positions_, factor, config_.position_dropout, pass);
}

nn::Memory EncoderDecoder::encode(const Tensor& source, const Rows& rows, const Pass& pass,
                                  const Mask& mask) const {
  const Tensor x =
      embed(source_embedding_, source, rows, pass.scope("source_embedding"));  // (Ns, C)
  return {encoder_.forward(x, rows, mask, pass.scope("encoder")), rows, mask};
}

Tensor EncoderDecoder::decode(const Tensor& target, const Rows& rows, const nn::Memory& memory,
                              const Pass& pass, const Mask& mask) const {
  const Tensor x =
      embed(target_embedding_, target, rows, pass.scope("target_embedding"));  // (Nt, C)
  return decoder_.forward(x, rows, Mask::causal() & mask, memory, pass.scope("decoder"));
}

Tensor EncoderDecoder::project(const Tensor& hidden, const Pass& pass) const {
  return projection_.forward_precise(hidden, pass);
}

Loss EncoderDecoder::loss(const Tensor& hidden, const Tensor& targets,
                          const CrossEntropyOptions& options, const Pass& pass) const {
  const Parameter &weight = projection_.weight(), &bias = projection_.bias();
  return projection_loss(hidden, pass.use_matrix(weight),
                         bias.defined() ? pass.use(bias) : Tensor(), targets, options);
}

Tensor EncoderDecoder::forward(const Tensor& source, const Rows& source_rows, const Tensor& target,
                               const Rows& target_rows, const Pass& pass, const Mask& source_mask,
                               const Mask& target_mask) const {
  return project(decode(target, target_rows, encode(source, source_rows, pass, source_mask), pass,
                        target_mask),
                 pass);
}

Tensor EncoderDecoder::forward(const Tensor& source, const Rows& source_rows, const Tensor& target,
                               const Rows& target_rows, Attentions& attentions,
                               const PassOptions& pass, const Mask& source_mask,
                               const Mask& target_mask) const {
  RAPT_CHECK(pass.capture == nullptr,
             "EncoderDecoder: expected a pass without a capture of its own");
  AttentionCapture capture;
  PassOptions with_capture = pass;
  with_capture.capture = &capture;
  Tensor logits = forward(source, source_rows, target, target_rows, Pass(with_capture), source_mask,
                          target_mask);
  attentions = {};
  for (AttentionCapture::Entry& entry : capture.entries) {
    auto& kind = entry.path.starts_with("encoder.")         ? attentions.encoder
                 : entry.path.ends_with(".cross_attention") ? attentions.cross
                                                            : attentions.decoder;
    kind.push_back(std::move(entry.weights));
  }
  return logits;
}

std::vector<nn::DecoderLayerState> EncoderDecoder::start(const nn::Memory& memory, const Pass& pass,
                                                         int64_t beams) const {
  return decoder_.start(memory, pass.scope("decoder"), beams);
}

Tensor EncoderDecoder::step(const Tensor& target, const Rows& rows, const Rows& sources,
                            const nn::Memory& memory, std::vector<nn::DecoderLayerState>& state,
                            const Pass& pass) const {
  const Tensor x = embed(target_embedding_, target, rows, pass.scope("target_embedding"));
  return project(decoder_.step(x, rows, sources, memory, state, pass.scope("decoder")), pass);
}

void EncoderDecoder::set_positions(const Tensor& positions) {
  RAPT_CHECK(positions.shape() == positions_.shape() && positions.dtype() == positions_.dtype(),
             "positions: expected {} of {}, got {} of {}", positions_.shape().text(),
             dtype_name(positions_.dtype()), positions.shape().text(),
             dtype_name(positions.dtype()));
  positions_ = positions.contiguous_copy();
}

void EncoderDecoder::make_bf16() {
  for (NamedParameter& p : nn::parameters(*this)) {
    if (p.parameter.shape().rank() == 2 && p.parameter.has_value()) p.parameter.set_bf16();
  }
}

void EncoderDecoder::make_int8() {
  for (NamedParameter& p : nn::parameters(*this)) {
    if (p.parameter.shape().rank() == 2 && p.parameter.int8() == nullptr)
      p.parameter.set_int8(std::make_shared<Int8Matrix>(p.parameter.value()));
  }
}

void EncoderDecoder::visit(const nn::Visitor& visitor, const std::string& prefix) const {
  source_embedding_.visit(visitor, nn::join_name(prefix, "source_embedding"));
  target_embedding_.visit(visitor, nn::join_name(prefix, "target_embedding"));
  encoder_.visit(visitor, nn::join_name(prefix, "encoder"));
  decoder_.visit(visitor, nn::join_name(prefix, "decoder"));
  projection_.visit(visitor, nn::join_name(prefix, "projection"));
}

}  // namespace rapt::models
