// What the program prints: results on stdout, everything else on stderr.
#pragma once

#include <string_view>

#include "cli/program.h"

namespace rapt::cli {

// Before anything is opened: a closed pipe becomes an error of the writer instead of a signal, and
// standard files that are closed are held by ones that refuse, so that no file of ours takes their
// numbers.
void guard_standard_files();

// A result. Throws Error where stdout does not take it; what is buffered is only known then, or by
// flush_results(), which every run ends with.
void print(std::string_view text);
void flush_results();

// A text on stderr as it stands. What stderr does not take is lost: messages must not end a run.
void message(std::string_view text) noexcept;

// "rapt: LINE" on stderr.
void complain(std::string_view line) noexcept;

// A line on stderr, unless --quiet; `note` only with -v.
void say(const Globals& globals, std::string_view line);
void note(const Globals& globals, std::string_view line);

// How much color stderr gets, by --color, NO_COLOR and what stderr is.
bool is_terminal();
bool wants_color(const Globals& globals);

}  // namespace rapt::cli
