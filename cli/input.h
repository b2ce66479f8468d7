// Text that the program reads, line by line.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <istream>
#include <streambuf>
#include <string>
#include <vector>

#include "rapt/text/lines.h"

namespace rapt::cli {

// Adds --invalid-utf8, whose value, "strict" or "replace", line_options() takes.
void add_invalid_utf8(CLI::App& verb, std::string& rule,
                      const std::string& help = "strict: an error; replace: U+FFFD");
text::LineOptions line_options(const std::string& invalid_utf8);

// Standard input as it comes, which knows whether the next line is there already.
class StandardInput : private std::streambuf {
 public:
  StandardInput();

  std::istream& stream() { return stream_; }

  // Whether the next line, or the end, can be read without waiting for whoever writes.
  bool ready();

 private:
  int_type underflow() override;
  void read_more();

  std::istream stream_;
  std::vector<char> held_;  // what was read and not asked for yet lies at its end
  bool ended_ = false;
  int failure_ = 0;  // the errno of a read that failed
};

// After the last line of `reader` on standard input. Throws Error (data) where reading failed,
// which std::cin takes for the end.
void check_stdin(const text::LineReader& reader);

}  // namespace rapt::cli
