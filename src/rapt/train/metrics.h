// metrics.jsonl: what a run measured, a JSON object a line.
//
//   {"step": 100, "epoch": 2, "loss": 3.21, "learning_rate": 0.001, "gradient_norm": 0.8,
//    "tokens": 40960, "tokens_per_s": 5120.2, "seconds": 8.1}
//   {"step": 100, "valid_loss": 3.4, "valid_perplexity": 29.96, "valid_bleu": 12.3,
//    "valid_chrf": 30.1, "best": true}
//   {"step": 117, "skipped": "the gradient of encoder.layers.0.feed_forward.linear1.weight"}
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "rapt/train/validation.h"

namespace rapt::train {

inline constexpr const char* kMetricsFile = "metrics.jsonl";

// A field that a line may lack is NaN in it.
struct MetricsPoint {
  int64_t step = 0;
  double loss = 0, rate = 0, norm = 0;
  double valid_loss = 0, valid_bleu = 0, valid_chrf = 0;
};

// Lines are whole: they are written at once, and what a power cut leaves of the last one is dropped
// when the run goes on.
class MetricsFile {
 public:
  // Goes on behind the lines of steps up to `step`, and of validations up to the step `validated`;
  // later ones are removed. 0 begins anew. Throws Error where the file cannot be written, here and
  // below.
  MetricsFile(const std::filesystem::path& path, int64_t step, int64_t validated);
  ~MetricsFile();
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;

  struct Trained {
    int64_t step, epoch;
    double loss, rate, norm;
    int64_t tokens;
    double tokens_per_second, seconds;
  };
  void trained(const Trained& line);
  void validated(int64_t step, const Validation& validation, bool best);
  void skipped(int64_t step, const std::string& why);
  void sync();  // brings the lines to the disk

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The lines of a file, up to one that is damaged. Throws Error (data) where it is missing or
// has none.
std::vector<MetricsPoint> read_metrics(const std::filesystem::path& path);

}  // namespace rapt::train
