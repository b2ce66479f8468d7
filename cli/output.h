// What the program prints: results on stdout, everything else on stderr.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "cli/program.h"
#include "rapt/base/error.h"

namespace rapt::cli {

// Before anything is opened: a closed pipe becomes an error of the writer instead of a signal, and
// standard files that are closed are held by ones that refuse, so that no file of ours takes their
// numbers.
void guard_standard_files();

// A result. Throws Error where stdout does not take it; what is buffered is only known then, or by
// flush_results(), which every run ends with.
void print(std::string_view text);
void flush_results();

// A line on stderr, by --log-format: as it stands, or as a JSON object with its level and time, and
// `fields`, an object of what the line says in words. --quiet leaves warnings and errors, -v adds
// `debug`. What stderr does not take is lost: messages must not end a run.
enum class Level { debug, info, warning, error };
using Fields = nlohmann::ordered_json;
void log(const Globals& globals, Level level, std::string_view line) noexcept;
void log(const Globals& globals, Level level, std::string_view line, const Fields& fields) noexcept;

// The same for info and, with -v, for debug.
void say(const Globals& globals, std::string_view line);
void say(const Globals& globals, std::string_view line, const Fields& fields);
void note(const Globals& globals, std::string_view line);

// What ended the run, "rapt: LINE" on stderr; `hint` is a command that helps. Gives the exit code.
int complain(const Globals& globals, ErrorKind kind, std::string_view line,
             std::string_view hint = "") noexcept;

// A text on stderr as it stands: what only a person reads. Callers see to --log-format.
void message(std::string_view text) noexcept;
bool is_json(const Globals& globals);

// Whether a stream gets color, by --color, NO_COLOR and what it is.
enum class Stream { out, err };
bool is_terminal(Stream stream);
bool wants_color(const Globals& globals, Stream stream);

}  // namespace rapt::cli
