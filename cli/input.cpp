#include "cli/input.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "cli/flags.h"
#include "rapt/base/check.h"

namespace rapt::cli {

void add_invalid_utf8(CLI::App& verb, std::string& rule, const std::string& help) {
  verb.add_option("--invalid-utf8", rule, help)
      ->type_name("RULE")
      ->check(one_of({"strict", "replace"}))
      ->capture_default_str();
}

text::LineOptions line_options(const std::string& invalid_utf8) {
  return {.invalid =
              invalid_utf8 == "replace" ? text::InvalidUtf8::replace : text::InvalidUtf8::refuse};
}

namespace {

constexpr size_t kPiece = 1 << 16;     // bytes read at once
constexpr size_t kMostHeld = 1 << 20;  // a line that is longer is read without looking for its end

}  // namespace

StandardInput::StandardInput() : stream_(this) {}

bool StandardInput::ready() {
  for (size_t searched = 0;;) {
    const auto size = static_cast<size_t>(egptr() - gptr());
    if (ended_ || failure_ != 0 || size >= kMostHeld) return true;
    if (size > searched && std::memchr(gptr() + searched, '\n', size - searched) != nullptr)
      return true;
    searched = size;
    pollfd file{STDIN_FILENO, POLLIN, 0};
    const int found = poll(&file, 1, 0);
    if (found == 0) return false;
    if (found > 0) read_more();
  }
}

StandardInput::int_type StandardInput::underflow() {
  if (gptr() == egptr() && !ended_ && failure_ == 0) read_more();
  if (failure_ != 0) throw std::runtime_error(std::strerror(failure_));
  return gptr() == egptr() ? traits_type::eof() : traits_type::to_int_type(*gptr());
}

// Adds what the next read gives to what is held.
void StandardInput::read_more() {
  std::vector<char> longer(gptr(), egptr());
  const size_t held = longer.size();
  longer.resize(held + kPiece);
  ssize_t count = 0;
  do {
    count = read(STDIN_FILENO, longer.data() + held, kPiece);
  } while (count < 0 && errno == EINTR);
  if (count < 0) failure_ = errno;
  if (count == 0) ended_ = true;
  longer.resize(held + static_cast<size_t>(std::max<ssize_t>(count, 0)));
  held_ = std::move(longer);
  setg(held_.data(), held_.data(), held_.data() + held_.size());
}

void check_stdin(const text::LineReader& reader) {
  if (std::ferror(stdin) != 0)
    fail(ErrorKind::data, "stdin: reading fails after line {}", reader.number());
}

}  // namespace rapt::cli
