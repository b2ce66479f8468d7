// A run: training that is validated, logged, saved, and goes on after any end as if there had been
// none.
//
// Its folder holds metrics.jsonl and TensorBoard's event file from the start, checkpoints/ (see
// checkpoint.h) while it goes on and after it, and the model itself once it ends: the best by
// validation where there is one, else the last; both averaged where that is asked for.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rapt/train/checkpoint.h"
#include "rapt/train/recipe.h"
#include "rapt/train/validation.h"

namespace rapt::train {

inline constexpr const char* kSettingsFile = "train.yaml";

struct RunOptions {
  std::filesystem::path folder{};

  // Regular checkpoints come every so many steps; 0: at the end of every epoch if more than one is
  // kept or averaged, else never. Beside them one is written where a validation is the best so far,
  // where the run ends or is stopped, and where that many minutes have passed since the last.
  int64_t save_every = 0;
  double save_minutes = 10;
  int64_t keep_last = 1;  // regular checkpoints that stay, beside the newest and the best

  int64_t average = 1;  // the model at the end is the mean of so many regular checkpoints
  double ema = 0;       // decay of a moving average, which then stands for the weights; 0: none

  ValidationMetric metric = ValidationMetric::loss;
  int64_t valid_every = 0;  // steps; 0: at the end of every epoch
  int64_t patience = 0;     // validations without a better one that end the run; 0: any number

  int64_t log_every = 10;   // steps of a line of metrics.jsonl; epochs end with one, too
  bool tensorboard = true;  // the same numbers as an event file, see event_file.h

  std::string settings{};  // what train.yaml beside the model holds; empty: no such file
};

// What a run tells while it goes on; any may be unset.
struct RunEvents {
  std::function<void(const Progress&)> progress{};  // after every step
  std::function<void(int64_t step, const Validation&, bool best)> validated{};
  // At the end: the mean of the checkpoints of these steps, and whether it is the model.
  std::function<void(const std::vector<int64_t>& steps, const Validation&, bool chosen)> averaged{};
  std::function<void(const std::filesystem::path& checkpoint)> saved{};
  std::function<void(const std::string& line)> warn{};
};

// What ended a run: recipe.fit.stop, or one of its own limits.
enum class End { stop, epochs, steps, minutes, patience };

struct RunResult {
  End end = End::stop;
  int64_t steps = 0;  // done in all
  Best best{};
  // The checkpoints whose model was written, or whose mean was.
  std::vector<int64_t> model_steps{};

  bool ended() const { return end != End::stop; }  // otherwise it was stopped, and may go on
};

// Trains `translator` as the settled recipe says, from `state` on: RunState{} or what open_run()
// found, with the translator loaded from there. A run from the start removes the checkpoints of an
// older one. `validation` may be null. Throws Error: (usage) where another process trains in the
// folder, (diverged) as fit() does, and where writing fails; the checkpoints are then what they
// were.
RunResult run(const decode::Translator& translator, const data::PairCorpus& corpus,
              const ValidationSet* validation, const Recipe& recipe, const RunOptions& options,
              RunState state, const RunEvents& events);

// The newest checkpoint that is whole. `warn` hears of newer ones that are not.
struct OpenRun {
  std::filesystem::path checkpoint;
  RunState state;
};
std::optional<OpenRun> open_run(const std::filesystem::path& folder,
                                const std::function<void(const std::string& line)>& warn);

// Throws Error (usage) where `folder` holds the checkpoints of a run, which a new one would remove.
void expect_no_run(const std::filesystem::path& folder);

// Whether `folder` holds checkpoints or the log of a run.
bool holds_run(const std::filesystem::path& folder);

// Removes the checkpoints of an older run.
void clear_run(const std::filesystem::path& folder);

// What decides the weights, by the names of the program's flags, and so must not change when a run
// goes on. The recipe is a settled one.
std::map<std::string, std::string> settings_of(const Recipe& recipe, const RunOptions& options);

// The files of these names as they are now. Throws Error (data) where one cannot be read.
std::map<std::string, DataFile> data_files(const std::map<std::string, std::string>& paths);

// Throws Error, (config) or (data), that names the first difference.
void expect_same_settings(const RunState& begun, const std::map<std::string, std::string>& now);
void expect_same_files(const RunState& begun, const std::map<std::string, DataFile>& now);

}  // namespace rapt::train
