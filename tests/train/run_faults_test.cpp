// Runs that are killed at any operation on a file, and disks that fail at any.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>

#include "rapt/base/runtime.h"
#include "tests/train/runs.h"

namespace rapt::train {
namespace {

using namespace testing;
namespace fs = std::filesystem;

Runner saving_runner() {
  Runner runner;
  runner.recipe.fit.epochs = 1;
  runner.options.save_every = 3;
  runner.options.keep_last = 1;
  return runner;
}

struct FaultGuard {
  explicit FaultGuard(std::function<int(std::string_view, const fs::path&)> fault) {
    set_file_fault(std::move(fault));
  }
  ~FaultGuard() { set_file_fault(nullptr); }
};

// How many operations on files a whole run takes, reading left out.
int operations_of_a_run() {
  const TemporaryFolder folder;
  int count = 0;
  const FaultGuard guard([&](std::string_view operation, const fs::path&) {
    count += operation != "read";
    return 0;
  });
  saving_runner().go(folder.path() / "run");
  return count;
}

// Every checkpoint with a final name is whole, and the model, too, where there is one.
void expect_whole(const fs::path& run) {
  const Checkpoints checkpoints(run);
  for (const int64_t step : checkpoints.steps()) verify_checkpoint(checkpoints.path_of(step));
  if (fs::exists(run / "config.json")) decode::load_translator(run);
}

void expect_no_leftovers(const fs::path& folder) {
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
    EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
}

TEST(Run, EveryOperationThatFailsLeavesTheOldCheckpointAndIsReported) {
  const TemporaryFolder folder;
  saving_runner().go(folder.path() / "whole");
  const std::string whole = weights_of(folder.path() / "whole");
  const int operations = operations_of_a_run();
  ASSERT_GT(operations, 30);
  for (int k = 1; k <= operations; k += k < 12 ? 1 : 5) {
    SCOPED_TRACE(k);
    const fs::path run = folder.path() / std::to_string(k);
    int count = 0;
    std::string failed;
    int64_t saved = 0;
    try {
      const FaultGuard guard([&](std::string_view operation, const fs::path&) {
        if (operation == "read" || ++count != k) return 0;
        failed = operation;
        return ENOSPC;
      });
      Runner runner = saving_runner();
      runner.events.saved = [&](const fs::path& path) { saved = read_run_state(path).place.step; };
      runner.go(run);
      FAIL() << "expected an Error";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::failure);
      EXPECT_NE(std::string(error.what()).find("No space left on device"), std::string::npos)
          << failed << ": " << error.what();
    }
    expect_whole(run);
    const auto begun = open_run(run, {});
    EXPECT_GE(begun ? begun->state.place.step : 0, saved);
    EXPECT_TRUE(saving_runner().go(run).ended());
    EXPECT_EQ(weights_of(run), whole);
    fs::remove_all(run);
  }
  expect_no_leftovers(folder.path());
}

// Runs `body` in a process of its own; whether it came to its end.
bool in_process(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    try {
      body();
      _exit(0);
    } catch (...) {
      _exit(1);
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << status;
  return WIFEXITED(status);
}

TEST(Run, R61_AKillAtAnyOperationLosesNoCheckpoint) {
  Runtime runtime({.threads = 1, .log = {}});
  const Runtime::Scope scope(runtime);
  const TemporaryFolder folder;
  saving_runner().go(folder.path() / "whole");
  const std::string whole = weights_of(folder.path() / "whole");
  const fs::path run = folder.path() / "run";
  // Each process gets one operation further than the last, so that each of them is the last once.
  int kills = 0;
  for (int k = 1;; k += 3, ++kills) {
    ASSERT_LT(kills, 400);
    const bool ended = in_process([&] {
      int count = 0;
      set_file_fault([&](std::string_view operation, const fs::path&) {
        if (operation != "read" && ++count == k) raise(SIGKILL);
        return 0;
      });
      saving_runner().go(run);
    });
    expect_whole(run);
    if (ended) break;
  }
  EXPECT_GT(kills, 5);
  EXPECT_EQ(weights_of(run), whole);
  EXPECT_EQ(timeless_metrics(run), timeless_metrics(folder.path() / "whole"));
  expect_no_leftovers(folder.path());
}

}  // namespace
}  // namespace rapt::train
