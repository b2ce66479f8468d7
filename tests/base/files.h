// What the tests of files and folders share.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "rapt/base/file.h"
#include "tests/testing/testing.h"

namespace rapt::testing {

// Lets the `turn`-th operation called `operation` (or each, for turn 0) fail with `code`.
class FaultScope {
 public:
  FaultScope(std::string operation, int code, int turn = 0) {
    set_file_fault([=, count = 0](std::string_view name, const std::filesystem::path&) mutable {
      if (name != operation) return 0;
      return turn == 0 || ++count == turn ? code : 0;
    });
  }
  ~FaultScope() { set_file_fault(nullptr); }
  FaultScope(const FaultScope&) = delete;
  FaultScope& operator=(const FaultScope&) = delete;
};

inline std::set<std::string> names_in(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

// By the standard library alone, so that the tests do not trust what they test.
inline std::string text_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

inline void put_text(const std::filesystem::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

// Microseconds that `body` takes.
template <class Body>
int64_t duration_of(Body&& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  const auto taken = std::chrono::steady_clock::now() - start;
  return std::chrono::duration_cast<std::chrono::microseconds>(taken).count();
}

// Lets a forked child run `body` for ever, and kills it after `delay` microseconds.
template <class Body>
void kill_while(Body&& body, int64_t delay) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    for (;;) body();
  }
  usleep(static_cast<useconds_t>(delay));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

}  // namespace rapt::testing
