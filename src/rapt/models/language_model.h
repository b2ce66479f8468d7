// One stack over tokens with learned positions and a head on the vocabulary: a decoder-only
// language model where it is causal (Radford et al. 2019, GPT-2), an encoder with a
// masked-language-model head where it is not (Devlin et al. 2019, BERT).
#pragma once

#include "rapt/nn/embedding.h"
#include "rapt/nn/encoder.h"
#include "rapt/ops/projection_loss.h"

namespace rapt::models {

struct LanguageModelConfig {
  int64_t vocab_size = 0;
  int64_t d_model = 768;
  int64_t nhead = 12;
  int64_t dim_feedforward = 3072;
  int64_t num_layers = 12;
  int64_t max_len = 1024;  // positions
  bool causal = true;
  std::string activation = "gelu_tanh";
  bool norm_first = true;
  bool final_norm = true;
  double layer_norm_eps = 1e-5;
  double dropout = 0.1;             // of sublayer outputs
  double embedding_dropout = 0.1;   // of the sum of embedding and position
  double attention_dropout = 0.1;   // of attention weights
  double activation_dropout = 0.0;  // of hidden units

  // Throws Error that names the field that cannot be, or those that contradict each other.
  void check() const;
};

class LanguageModel : public nn::Module {
 public:
  // Tables normal with deviation 0.02, layers as nn draws them. The head is the embedding's table.
  LanguageModel(const LanguageModelConfig& config, const nn::Init& init);

  // ids (N) i32 -> hidden (N, C). Throws Error for ids beyond the vocabulary and sentences longer
  // than max_len.
  Tensor forward(const Tensor& ids, const Rows& rows, const Pass& pass) const;
  Tensor logits(const Tensor& hidden, const Pass& pass) const;  // (N, C) -> (N, V)
  // The loss of hidden (N, C) against targets (N) i32; see projection_loss.
  Loss loss(const Tensor& hidden, const Tensor& targets, const CrossEntropyOptions& options,
            const Pass& pass) const;

  // embedding.weight, positions.weight, encoder., and head.weight, which is embedding.weight.
  void visit(const nn::Visitor& visitor, const std::string& prefix) const override;
  const LanguageModelConfig& config() const { return config_; }

 private:
  LanguageModelConfig config_;
  nn::Embedding embedding_, positions_;
  nn::Encoder encoder_;
};

}  // namespace rapt::models
