// The training cases of `rapt bench`: models and batches of fixed sizes, and what one step of them
// takes.
//
// toy: the worked example, the official spelling at the paper's size, SGD with momentum. small: C
// 256, 3 + 3 layers, 8,000 words in one matrix, 128 pairs of 24 tokens, label smoothing 0.1, AdamW.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace rapt::measure {

struct TrainingOptions {
  int64_t steps = 10;               // timed, after three that are not
  std::optional<double> dropout{};  // instead of the case's own 0.1
  std::filesystem::path
      init{};  // a folder with weights.safetensors and batch.safetensors to start from
  uint64_t seed = 0;
};

struct TrainingResult {
  std::string name;
  int threads = 0;
  double step_ms = 0, min_ms = 0, max_ms = 0;  // median, least, largest
  double tokens_per_s = 0;                     // target tokens that enter the loss
  double flops_per_s = 0;       // of products and attention over real tokens, three times forward
  double fraction_of_peak = 0;  // of the multiply-add peak measured just before
  int64_t rss_mib = 0;          // peak resident memory of the process
  std::vector<double> loss;     // the first three, and the last
};

std::vector<std::string> training_cases();

// Throws Error (usage) for an unknown case, (model) for an init folder that does not fit.
TrainingResult run_training(const std::string& name, const TrainingOptions& options);

// Multiply-adds and what attention does, forward: 2 a product's term; causal scores count half.
double encoder_decoder_flops(int64_t source_tokens, int64_t target_tokens, int64_t C, int64_t F,
                             int64_t encoder_layers, int64_t decoder_layers, int64_t V,
                             double source_pairs, double target_pairs, double cross_pairs);

}  // namespace rapt::measure
