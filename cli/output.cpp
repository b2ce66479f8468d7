#include "cli/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>
#include <system_error>

namespace rapt::cli {
namespace {

[[noreturn]] void refuse_results() {
  throw Error("cannot write to stdout: " + std::generic_category().message(errno));
}

const char* name_of(Level level) {
  switch (level) {
    case Level::debug:
      return "debug";
    case Level::info:
      return "info";
    case Level::warning:
      return "warning";
    case Level::error:
      return "error";
  }
  return "";
}

// As README's table of exit codes puts it.
const char* name_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::failure:
      return "failure";
    case ErrorKind::usage:
      return "usage";
    case ErrorKind::config:
      return "config";
    case ErrorKind::model:
      return "model";
    case ErrorKind::data:
      return "data";
    case ErrorKind::diverged:
      return "diverged";
    case ErrorKind::memory:
      return "memory";
    case ErrorKind::network:
      return "network";
  }
  return "";
}

// Coordinated universal time to the millisecond, as RFC 3339 writes it.
std::string timestamp() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  std::tm utc{};
  gmtime_r(&now.tv_sec, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", utc.tm_year + 1900,
                     utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                     now.tv_nsec / 1'000'000);
}

// Invalid UTF-8, of a file's name for instance, becomes U+FFFD: JSON has no bytes.
std::string as_json(Level level, std::string_view line, const Fields& fields) {
  Fields object = {{"time", timestamp()}, {"level", name_of(level)}, {"message", line}};
  if (!fields.is_null()) object.update(fields);
  return object.dump(-1, ' ', false, Fields::error_handler_t::replace) + "\n";
}

}  // namespace

void guard_standard_files() {
  std::signal(SIGPIPE, SIG_IGN);
  // The lowest number is given first. What is opened here cannot be read, or not be written.
  for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(file, F_GETFD) != -1 || errno != EBADF) continue;
    if (open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY) != file) std::_Exit(1);
  }
}

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) refuse_results();
}

void flush_results() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) refuse_results();
}

void message(std::string_view text) noexcept { std::fwrite(text.data(), 1, text.size(), stderr); }

void log(const Globals& globals, Level level, std::string_view line) noexcept {
  log(globals, level, line, Fields());
}

void log(const Globals& globals, Level level, std::string_view line,
         const Fields& fields) noexcept {
  if (globals.quiet && level < Level::warning) return;
  if (!globals.verbose && level == Level::debug) return;
  try {
    message(is_json(globals)         ? as_json(level, line, fields)
            : level < Level::warning ? fmt::format("{}\n", line)
                                     : fmt::format("rapt: {}\n", line));
  } catch (const std::exception&) {  // no memory for it: the line as it stands is better than none
    message(line);
    message("\n");
  }
}

void say(const Globals& globals, std::string_view line) { log(globals, Level::info, line); }

void say(const Globals& globals, std::string_view line, const Fields& fields) {
  log(globals, Level::info, line, fields);
}

void note(const Globals& globals, std::string_view line) { log(globals, Level::debug, line); }

int complain(const Globals& globals, ErrorKind kind, std::string_view line,
             std::string_view hint) noexcept {
  const int code = static_cast<int>(kind);
  try {
    Fields fields = {{"kind", name_of(kind)}, {"exit_code", code}};
    if (!hint.empty()) fields["hint"] = hint;
    log(globals, Level::error, line, fields);
  } catch (const std::exception&) {
    log(globals, Level::error, line);
  }
  if (!hint.empty() && !is_json(globals)) {
    message("Try: ");
    message(hint);
    message("\n");
  }
  return code;
}

bool is_json(const Globals& globals) { return globals.log_format == "json"; }

bool is_terminal(Stream stream) {
  const char* kind = std::getenv("TERM");
  const int number = stream == Stream::out ? STDOUT_FILENO : STDERR_FILENO;
  return isatty(number) == 1 && (kind == nullptr || std::string_view(kind) != "dumb");
}

bool wants_color(const Globals& globals, Stream stream) {
  if (globals.color != "auto") return globals.color == "always";
  const char* no_color = std::getenv("NO_COLOR");  // counts unless empty, by no-color.org
  return is_terminal(stream) && (no_color == nullptr || *no_color == '\0');
}

}  // namespace rapt::cli
