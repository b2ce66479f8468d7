// What the folder of a run holds.
#include "rapt/base/check.h"
#include "rapt/base/descriptor.h"
#include "rapt/train/metrics.h"
#include "rapt/train/run.h"

namespace rapt::train {

namespace fs = std::filesystem;

std::optional<OpenRun> open_run(const fs::path& folder,
                                const std::function<void(const std::string& line)>& warn) {
  const Checkpoints checkpoints(folder);
  std::vector<int64_t> steps = checkpoints.steps();
  std::string last_problem;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const fs::path path = checkpoints.path_of(*step);
    try {
      verify_checkpoint(path);
      return OpenRun{path, read_run_state(path)};
    } catch (const Error& error) {
      last_problem = error.what();
      if (warn) warn(last_problem);
    }
  }
  if (!steps.empty())
    fail(ErrorKind::model,
         "{}: no checkpoint is whole; begin another run, or bring one back; the oldest: {}",
         folder.string(), last_problem);
  return std::nullopt;
}

void expect_no_run(const fs::path& folder) {
  const Checkpoints checkpoints(folder);
  const std::vector<int64_t> steps = checkpoints.steps();
  if (steps.empty()) return;
  fail(ErrorKind::usage,
       "{}: a run {} there at step {}; say another --out, go on with it by --resume{}, or lose it "
       "by "
       "--restart",
       folder.string(), steps.back() == checkpoints.finished() ? "ended" : "stopped", steps.back(),
       steps.back() == checkpoints.finished() ? " and more --epochs or --steps" : "");
}

bool holds_run(const fs::path& folder) {
  std::error_code ignored;
  return !Checkpoints(folder).steps().empty() || fs::exists(folder / kMetricsFile, ignored);
}

void clear_run(const fs::path& folder) {
  Checkpoints(folder).keep_only({});  // one by one, each as a whole
  std::error_code problem;
  fs::remove_all(folder / Checkpoints::kFolder, problem);
  if (problem) fail_file("remove", folder / Checkpoints::kFolder, problem.value());
}

}  // namespace rapt::train
