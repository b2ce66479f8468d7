#include "cli/input.h"

#include <cstdio>

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

void check_stdin(const text::LineReader& reader) {
  if (std::ferror(stdin) != 0)
    fail(ErrorKind::data, "stdin: reading fails after line {}", reader.number());
}

}  // namespace rapt::cli
