// Text that the program reads, line by line.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <string>

#include "rapt/text/lines.h"

namespace rapt::cli {

// Adds --invalid-utf8, whose value, "strict" or "replace", line_options() takes.
void add_invalid_utf8(CLI::App& verb, std::string& rule,
                      const std::string& help = "strict: an error; replace: U+FFFD");
text::LineOptions line_options(const std::string& invalid_utf8);

// After the last line of `reader` on standard input. Throws Error (data) where reading failed,
// which std::cin takes for the end.
void check_stdin(const text::LineReader& reader);

}  // namespace rapt::cli
