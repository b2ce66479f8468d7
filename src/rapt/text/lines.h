// Text, line by line, under one set of rules for files and standard input:
//
//   - only \n ends a line (U+0085, U+2028, \v, \f and a lone \r are text); the last line needs none
//   - one \r before the end of a line is dropped, so that CRLF files read as LF files do
//   - a byte-order mark at the very start is dropped, elsewhere it is text
//   - the text is UTF-8; what is not is refused with its place, or replaced and counted
//   - a file packed by gzip is read unpacked, and so is the one file of a zip archive; a stream or
//     a pipe that is packed is refused
//   - a line longer than Limits::line_bytes is refused before it fills the memory
#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "rapt/base/limits.h"

namespace rapt::text {

inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

enum class InvalidUtf8 {
  refuse,   // an Error that names the line and the byte
  replace,  // each invalid sequence becomes U+FFFD
};

struct LineOptions {
  InvalidUtf8 invalid = InvalidUtf8::refuse;
  Limits limits{};
};

class LineReader {
 public:
  // Opens a file. Throws Error (data): missing, a folder, unreadable.
  explicit LineReader(const std::filesystem::path& path, const LineOptions& options = {});

  // Reads `input`, which must outlive the reader, and no further than the lines that were asked
  // for: fit for a terminal. `name` stands in messages.
  LineReader(std::istream& input, std::string name, const LineOptions& options = {});

  // The next line without its end, valid until the next call; nothing after the last. Throws Error
  // (data) on a line that is too long or not UTF-8 (number() counts it, and the call after that
  // goes on with the next line), where reading fails, and where the text is packed.
  std::optional<std::string_view> next();

  // The number of the line that next() gave last, from 1.
  int64_t number() const { return number_; }

  // Invalid sequences replaced by U+FFFD so far.
  int64_t replaced() const { return replaced_; }

  const std::string& name() const { return name_; }

 private:
  bool read_raw();
  void refuse_packed() const;
  void drop_marks();
  void require_utf8();

  std::unique_ptr<std::istream> file_;
  std::istream& input_;
  std::string name_;
  LineOptions options_;
  std::string line_;
  int64_t number_ = 0;
  int64_t replaced_ = 0;
  bool rest_of_line_ = false;  // the input stands inside a line that was refused
  int64_t offset_ = 0;         // of the line's first byte in the input
  int64_t next_offset_ = 0;
};

}  // namespace rapt::text
