// How far a run is: a bar on a terminal, plain lines elsewhere.
#pragma once

#include <chrono>
#include <string>

#include "cli/program.h"
#include "rapt/train/seq2seq.h"

namespace rapt::cli {

class ProgressPrinter {
 public:
  ProgressPrinter(const Globals& globals, int64_t plain_every_epochs);
  ~ProgressPrinter();

  // Called after every step.
  void report(const train::Progress& progress);

 private:
  enum class Kind { none, plain, bar };
  void draw(const train::Progress& progress, bool epoch_ended);

  Kind kind_ = Kind::plain;
  int64_t every_;
  bool drawn_ = false;  // an unfinished line stands on the terminal
  std::chrono::steady_clock::time_point last_{};
};

// "1:02:03" or "02:03".
std::string duration(double seconds);

}  // namespace rapt::cli
