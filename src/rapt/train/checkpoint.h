// Checkpoints of a run: folders from which it goes on as if it had never stopped.
//
//   RUN/checkpoints/step-000001200/
//     config.json, model.safetensors, vocabularies   a model folder like any other
//     training.safetensors    the optimizer's state; with a moving average, the weights behind it
//     training.json           where the run stands, its settings, a checksum of every tensor
//
// Each is written under a temporary name, brought to the disk, and then renamed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "rapt/decode/translator.h"
#include "rapt/optim/average.h"
#include "rapt/optim/optimizer.h"
#include "rapt/train/seq2seq.h"

namespace rapt::train {

// A file that the run reads, as it was when the run began.
struct DataFile {
  std::string path, checksum;
  int64_t bytes = 0;
};

// The validation that scored best, how many since did not, and the step of the last one.
struct Best {
  int64_t step = 0;  // 0: none yet
  double score = 0;
  int64_t worse_since = 0, validated = 0;
};

// Sums since the last line of the log.
struct LogWindow {
  double loss_sum = 0;
  int64_t tokens = 0;
};

// All of a run beside weights and optimizer.
struct RunState {
  Place place{};
  Best best{};
  LogWindow log{};
  bool regular = false;  // saved where the settings say so, not because the run had to stop
  std::map<std::string, std::string> settings{};  // name -> value, of what decides the weights
  std::map<std::string, DataFile> files{};        // by their flags: "--source"
  std::string arguments = "{}";                   // for whoever began the run: any JSON object
};

// The checkpoints of a run's folder.
class Checkpoints {
 public:
  // `run` need not exist.
  explicit Checkpoints(const std::filesystem::path& run) : folder_(run / kFolder) {}

  static constexpr const char* kFolder = "checkpoints";
  std::filesystem::path path_of(int64_t step) const;
  std::vector<int64_t> steps() const;  // ascending

  // Writes the checkpoint of `state`, and reads it back. `average` may be null: with one, the model
  // in the folder is the averaged one. Throws Error; older checkpoints are then what they were.
  void write(const decode::Translator& translator, const optim::Optimizer& optimizer,
             optim::MovingAverage* average, const RunState& state) const;

  // Removes all but these.
  void keep_only(const std::vector<int64_t>& steps) const;

  // Removes what writers that were killed left.
  void clear_leftovers() const;

  // The step of the run that ended, where a finished model was made of it; 0 otherwise.
  int64_t finished() const;

 private:
  std::filesystem::path folder_;
};

inline constexpr const char* kFinishedFile = "finished";

// The state that a checkpoint holds, without its tensors. Throws Error (model) where it is damaged.
RunState read_run_state(const std::filesystem::path& checkpoint);

// Compares every tensor with its checksum. Throws Error (model) naming the one that is damaged.
void verify_checkpoint(const std::filesystem::path& checkpoint);

// Gives optimizer, average (or null) and the translator's parameters what the checkpoint holds.
// Throws Error (model) for a state that is missing or does not fit.
void load_training_state(const std::filesystem::path& checkpoint, optim::Optimizer& optimizer,
                         optim::MovingAverage* average);

}  // namespace rapt::train
