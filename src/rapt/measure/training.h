// The training cases of `rapt bench`: models and batches of fixed sizes, and what one step of them
// takes.
//
// Encoder-decoders: toy, the worked example, the official spelling at the paper's size, SGD with
// momentum; small, C 256, 3 + 3 layers, 8,000 words in one matrix, 128 pairs of 24 tokens, label
// smoothing 0.1; base, the paper's size with 32,000 words, 128 pairs of 32 tokens. One stack of C
// 768, 12 layers: gpt64, gpt512 and gpt1024, 4 sequences of that length; bert, 32 sentences of 128
// tokens, 15 % masked, and bertpad, of 16 to 128; vit, 16 images of 224 x 224. AdamW.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "rapt/tensor/shape.h"

namespace rapt::measure {

struct TrainingOptions {
  int64_t steps = 10;               // timed, after three that are not
  std::optional<double> dropout{};  // instead of the case's own 0.1
  std::filesystem::path
      init{};  // a folder with weights.safetensors and batch.safetensors to start from
  uint64_t seed = 0;
  std::optional<DType> compute_type{};  // bf16: with f32 parameters; unset: theirs
  bool recompute = false;               // layers again in the backward pass
};

struct TrainingResult {
  std::string name;
  int threads = 0;
  double step_ms = 0, min_ms = 0, max_ms = 0;  // median, least, largest
  std::string unit = "tokens";                 // or images
  double items_per_s = 0;       // target tokens that enter the loss, real tokens, or images
  double flops_per_s = 0;       // of products and attention over real tokens, three times forward
  double fraction_of_peak = 0;  // of the multiply-add peak measured just before
  int64_t rss_mib = 0;          // peak resident memory of the process
  std::vector<double> loss;     // the first three, and the last
};

std::vector<std::string> training_cases();

// Throws Error (usage) for an unknown case, (model) for an init folder that does not fit.
TrainingResult run_training(const std::string& name, const TrainingOptions& options);

}  // namespace rapt::measure
