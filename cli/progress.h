// How far a run is: a bar on a terminal, plain lines elsewhere, objects with --log-format json.
#pragma once

#include <chrono>
#include <string>

#include "cli/program.h"
#include "rapt/train/seq2seq.h"

namespace rapt::cli {

// One line an epoch stays. In between, the bar moves ten times a second; other lines come every
// half minute.
class ProgressPrinter {
 public:
  explicit ProgressPrinter(const Globals& globals);
  ~ProgressPrinter();
  ProgressPrinter(const ProgressPrinter&) = delete;
  ProgressPrinter& operator=(const ProgressPrinter&) = delete;

  // Called after every step.
  void report(const train::Progress& progress);

  // Before other lines: a bar that is drawn stays where it is.
  void end_line();

 private:
  enum class Kind { none, plain, bar };
  void draw(const train::Progress& progress, bool epoch_ended);

  const Globals& globals_;
  Kind kind_ = Kind::plain;
  bool drawn_ = false;  // an unfinished line stands on the terminal
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// "1:02:03" or "02:03".
std::string duration(double seconds);

}  // namespace rapt::cli
