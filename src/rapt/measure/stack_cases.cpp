// The models of one stack that `rapt bench` trains: gpt64, gpt512, gpt1024, bert, bertpad, vit.
#include <algorithm>

#include "rapt/base/check.h"
#include "rapt/base/checked.h"
#include "rapt/measure/training_case.h"
#include "rapt/models/checkpoint.h"
#include "rapt/models/language_model.h"
#include "rapt/models/safetensors.h"
#include "rapt/models/vision_transformer.h"

namespace rapt::measure {
namespace {

using models::LanguageModel;
using models::LanguageModelConfig;
using models::SafetensorsFile;
using models::VisionTransformer;

// The names that weights.safetensors has.
const models::Layout& stack_layout() {
  // clang-format off
  static const models::Layout layout{"stack", {
      {"embedding.weight", {"embedding.weight"}},
      {"embedding.bias", {"embedding.bias"}},
      {"position.weight", {"positions.weight"}},
      {"blocks.{i}.norm1.weight", {"encoder.layers.{i}.self_attention_norm.weight"}},
      {"blocks.{i}.norm1.bias", {"encoder.layers.{i}.self_attention_norm.bias"}},
      {"blocks.{i}.qkv.weight", {"encoder.layers.{i}.self_attention.query.weight", "encoder.layers.{i}.self_attention.key.weight", "encoder.layers.{i}.self_attention.value.weight"}},
      {"blocks.{i}.qkv.bias", {"encoder.layers.{i}.self_attention.query.bias", "encoder.layers.{i}.self_attention.key.bias", "encoder.layers.{i}.self_attention.value.bias"}},
      {"blocks.{i}.out.weight", {"encoder.layers.{i}.self_attention.output.weight"}},
      {"blocks.{i}.out.bias", {"encoder.layers.{i}.self_attention.output.bias"}},
      {"blocks.{i}.norm2.weight", {"encoder.layers.{i}.feed_forward_norm.weight"}},
      {"blocks.{i}.norm2.bias", {"encoder.layers.{i}.feed_forward_norm.bias"}},
      {"blocks.{i}.ff1.weight", {"encoder.layers.{i}.feed_forward.linear1.weight"}},
      {"blocks.{i}.ff1.bias", {"encoder.layers.{i}.feed_forward.linear1.bias"}},
      {"blocks.{i}.ff2.weight", {"encoder.layers.{i}.feed_forward.linear2.weight"}},
      {"blocks.{i}.ff2.bias", {"encoder.layers.{i}.feed_forward.linear2.bias"}},
      {"norm.weight", {"encoder.norm.weight"}},
      {"norm.bias", {"encoder.norm.bias"}},
      {"head.weight", {"head.weight"}},
  }, {}};
  // clang-format on
  return layout;
}

void load_weights(const nn::Module& model, const TrainingOptions& options) {
  models::read_parameters(model, SafetensorsFile(options.init / "weights.safetensors"),
                          stack_layout());
}

Tensor read(const SafetensorsFile& file, const char* name, DType type, int rank) {
  Tensor x = file.load(file.at(name), type);
  RAPT_CHECK(x.rank() == rank, "bench: expected {} with {} axes, got {}", name, rank,
             x.shape().text());
  return x;
}

// Sentences of tokens, each with what it is to say or, in most places, nothing (-100).
struct TokenBatch {
  Tensor ids, targets;  // (N)
  std::vector<int64_t> lengths;
};

// Every token is to say the next: ids (B, T + 1).
TokenBatch next_tokens(const Tensor& ids) {
  const int64_t B = ids.dim(0), T = ids.dim(1) - 1;
  TokenBatch batch{Tensor::empty({B * T}, DType::i32), Tensor::empty({B * T}, DType::i32),
                   std::vector<int64_t>(static_cast<size_t>(B), T)};
  for (int64_t b = 0; b < B; ++b) {
    const int32_t* from = ids.data<int32_t>() + b * (T + 1);
    std::copy_n(from, T, batch.ids.data<int32_t>() + b * T);
    std::copy_n(from + 1, T, batch.targets.data<int32_t>() + b * T);
  }
  return batch;
}

// Some tokens are to say a word: ids (B, T), of which each sentence has its length, and
// `labels` for the places `masked`, counted over (B, T).
TokenBatch masked_tokens(const Tensor& ids, const std::vector<int64_t>& lengths,
                         const Tensor& masked, const Tensor& labels) {
  const int64_t B = ids.dim(0), T = ids.dim(1);
  RAPT_CHECK(std::ssize(lengths) == B && masked.shape() == labels.shape(),
             "bench: expected {} lengths and as many labels as masked tokens, got {}, {} and {}", B,
             lengths.size(), labels.shape().text(), masked.shape().text());
  std::vector<int32_t> said(static_cast<size_t>(B * T), -100);
  for (int64_t i = 0; i < masked.numel(); ++i)
    said.at(static_cast<size_t>(masked.data<int64_t>()[i])) = labels.data<int32_t>()[i];
  std::vector<int32_t> tokens, targets;
  for (int64_t b = 0; b < B; ++b) {
    const int64_t length = lengths[static_cast<size_t>(b)];
    RAPT_CHECK(length >= 0 && length <= T, "bench: expected lengths up to {}, got {}", T, length);
    tokens.insert(tokens.end(), ids.data<int32_t>() + b * T, ids.data<int32_t>() + b * T + length);
    targets.insert(targets.end(), said.begin() + b * T, said.begin() + b * T + length);
  }
  const Shape N{std::ssize(tokens)};
  return {Tensor::from(tokens, N), Tensor::from(targets, N), lengths};
}

TokenBatch gpt_batch(int64_t T, int64_t V, const TrainingOptions& options, Rng& rng) {
  if (options.init.empty()) return next_tokens(drawn_ids({4, T + 1}, V, rng));
  return next_tokens(
      read(SafetensorsFile(options.init / "batch.safetensors"), "ids", DType::i32, 2));
}

// 32 sentences of 128 tokens, or of 16 to 128, of which 15 % are masked.
TokenBatch bert_batch(bool full, int64_t V, const TrainingOptions& options, Rng& rng) {
  if (!options.init.empty()) {
    const SafetensorsFile file(options.init / "batch.safetensors");
    return masked_tokens(read(file, "ids", DType::i32, 2),
                         read(file, "lengths", DType::i64, 1).to_vector<int64_t>(),
                         read(file, "masked", DType::i64, 1), read(file, "labels", DType::i32, 1));
  }
  std::vector<int64_t> lengths, places;
  for (int64_t i = 0; i < 32; ++i) {
    lengths.push_back(full ? 128 : 16 + 37 * i % 113);
    for (int64_t t = 0; t < lengths.back(); ++t) places.push_back(i * 128 + t);
  }
  for (size_t i = places.size(); i > 1; --i)
    std::swap(places[i - 1], places[static_cast<size_t>(rng.below(static_cast<int64_t>(i)))]);
  places.resize(places.size() * 15 / 100);
  const Shape chosen{std::ssize(places)};
  const Tensor ids = drawn_ids({32, 128}, V, rng);
  return masked_tokens(ids, lengths, Tensor::from(places, chosen), drawn_ids(chosen, V, rng));
}

class LanguageModelCase : public TrainingCase {
 public:
  LanguageModelCase(const LanguageModelConfig& config, TokenBatch batch,
                    const TrainingOptions& options, Rng& rng)
      : batch_(std::move(batch)),
        rows_(Rows::packed(batch_.lengths)),
        model_(config, nn::Init{.rng = options.init.empty() ? &rng : nullptr}) {
    if (!options.init.empty()) load_weights(model_, options);
  }

  const nn::Module& model() const override { return model_; }
  Loss loss(const Pass& pass) const override {
    return model_.loss(model_.forward(batch_.ids, rows_, pass), batch_.targets, {}, pass);
  }
  int64_t items() const override { return batch_.ids.dim(0); }

  double flops() const override {
    const LanguageModelConfig& c = model_.config();
    double pairs = 0, said = 0;
    for (const int64_t length : batch_.lengths)
      pairs += static_cast<double>(length) * static_cast<double>(length) * (c.causal ? 0.5 : 1);
    for (int64_t i = 0; i < items(); ++i) said += batch_.targets.data<int32_t>()[i] >= 0;
    return 3 * (static_cast<double>(c.num_layers) *
                    layer_flops(static_cast<double>(items()), pairs, c.d_model, c.dim_feedforward) +
                2 * said * static_cast<double>(c.d_model) * static_cast<double>(c.vocab_size));
  }

 private:
  TokenBatch batch_;
  Rows rows_;
  LanguageModel model_;
};

class ImageCase : public TrainingCase {
 public:
  ImageCase(const TrainingOptions& options, Rng& rng)
      : model_({.max_patches = 256, .dropout = options.dropout.value_or(0)},
               nn::Init{.rng = options.init.empty() ? &rng : nullptr}) {
    if (options.init.empty()) {
      std::vector<float> values(16 * 3 * 224 * 224);
      for (float& value : values) value = static_cast<float>(rng.normal());
      pixels_ = Tensor::from(values, {16, 3, 224, 224});
      labels_ = drawn_ids({16}, 1000, rng);
      return;
    }
    const SafetensorsFile file(options.init / "batch.safetensors");
    pixels_ = read(file, "pixels", DType::f32, 4);
    labels_ = read(file, "labels", DType::i32, 1);
    load_weights(model_, options);
  }

  const nn::Module& model() const override { return model_; }
  Loss loss(const Pass& pass) const override {
    return cross_entropy(model_.forward(pixels_, pass), labels_);
  }
  int64_t items() const override { return pixels_.dim(0); }
  const char* unit() const override { return "images"; }

  double flops() const override {
    const models::VisionTransformerConfig& c = model_.config();
    const double B = static_cast<double>(items()), C = static_cast<double>(c.d_model);
    const int64_t side = c.image_size / c.patch_size;
    const double P = static_cast<double>(side * side);
    const double patch = static_cast<double>(c.channels * c.patch_size * c.patch_size);
    return 3 * (static_cast<double>(c.num_layers) *
                    layer_flops(B * P, B * P * P, c.d_model, c.dim_feedforward) +
                2 * B * P * patch * C + 2 * B * C * static_cast<double>(c.num_classes));
  }

 private:
  VisionTransformer model_;
  Tensor pixels_, labels_;  // (16, 3, 224, 224), (16)
};

}  // namespace

std::unique_ptr<TrainingCase> make_stack_case(const std::string& name,
                                              const TrainingOptions& options) {
  Rng rng(options.seed);
  LanguageModelConfig config;
  config.embedding_dropout = config.attention_dropout = config.activation_dropout = 0;
  for (const int64_t T : {64, 512, 1024}) {
    if (name != "gpt" + std::to_string(T)) continue;
    config.vocab_size = 50257;
    config.dropout = options.dropout.value_or(0);
    return std::make_unique<LanguageModelCase>(
        config, gpt_batch(T, config.vocab_size, options, rng), options, rng);
  }
  if (name == "bert" || name == "bertpad") {
    config.vocab_size = 30522;
    config.max_len = 512;
    config.causal = false;
    config.activation = "gelu";
    config.dropout = options.dropout.value_or(0.1);
    return std::make_unique<LanguageModelCase>(
        config, bert_batch(name == "bert", config.vocab_size, options, rng), options, rng);
  }
  if (name == "vit") return std::make_unique<ImageCase>(options, rng);
  return nullptr;
}

}  // namespace rapt::measure
