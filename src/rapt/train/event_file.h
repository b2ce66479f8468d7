// TensorBoard's event file: what metrics.jsonl has, for `tensorboard --logdir RUN`.
//
// Records as TensorFlow frames them: length (8 bytes, low first), its masked CRC-32C, an Event as
// protocol buffer, its masked CRC-32C. The tags are train/loss, train/learning_rate,
// train/gradient_norm, train/tokens_per_s, valid/loss, valid/perplexity, valid/bleu, valid/chrf.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "rapt/train/metrics.h"
#include "rapt/train/validation.h"

namespace rapt::train {

// TensorBoard looks for "tfevents" in names.
inline constexpr const char* kEventFile = "events.out.tfevents.0.rapt";

class EventFile {
 public:
  // Goes on behind the events of steps up to `step`, and of validations up to the step `validated`;
  // later ones and what is damaged are removed. 0 begins anew. Throws Error where the file cannot
  // be written, here and below.
  EventFile(const std::filesystem::path& path, int64_t step, int64_t validated);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  // Numbers that are not finite are left out.
  void trained(const MetricsFile::Trained& line);
  void validated(int64_t step, const Validation& validation);
  void sync();  // brings the events to the disk

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rapt::train
