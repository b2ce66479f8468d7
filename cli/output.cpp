#include "cli/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include "rapt/base/error.h"

namespace rapt::cli {
namespace {

[[noreturn]] void refuse_results() {
  throw Error("cannot write to stdout: " + std::generic_category().message(errno));
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

void complain(std::string_view line) noexcept {
  message("rapt: ");
  message(line);
  message("\n");
}

void say(const Globals& globals, std::string_view line) {
  if (!globals.quiet) message(std::string(line) + "\n");
}

void note(const Globals& globals, std::string_view line) {
  if (globals.verbose) say(globals, line);
}

bool is_terminal() {
  const char* kind = std::getenv("TERM");
  return isatty(STDERR_FILENO) == 1 && (kind == nullptr || std::string_view(kind) != "dumb");
}

bool wants_color(const Globals& globals) {
  if (globals.color != "auto") return globals.color == "always";
  const char* no_color = std::getenv("NO_COLOR");  // counts unless empty, by no-color.org
  return is_terminal() && (no_color == nullptr || *no_color == '\0');
}

}  // namespace rapt::cli
