#include "rapt/text/lines.h"

#include <algorithm>
#include <array>
#include <istream>
#include <limits>
#include <stdexcept>
#include <utility>

#include "rapt/base/check.h"
#include "rapt/base/utf8.h"
#include "rapt/text/open_text.h"

namespace rapt::text {
namespace {

constexpr size_t kPiece = 1 << 16;  // bytes asked for at once

// Runs `read`, which reads from the reader's input; throws Error (data) where that fails.
template <class Read>
void guard(const std::istream& input, const LineReader& reader, Read read) {
  std::string why;
  try {
    read();
  } catch (const std::ios_base::failure&) {  // gives no reason that helps
  } catch (const std::runtime_error& error) {
    why = fmt::format(": {}", error.what());
  }
  if (input.bad())
    fail(ErrorKind::data, "{}: reading fails after line {}{}", reader.name(), reader.number(), why);
}

}  // namespace

LineReader::LineReader(const std::filesystem::path& path, const LineOptions& options)
    : file_(open_text(path)), input_(*file_), name_(path.string()), options_(options) {}

LineReader::LineReader(std::istream& input, std::string name, const LineOptions& options)
    : input_(input), name_(std::move(name)), options_(options) {}

std::optional<std::string_view> LineReader::next() {
  if (!read_raw()) return std::nullopt;
  require_utf8();
  drop_marks();
  return line_;
}

// The next line as it stands, without its \n, into line_; false at the end.
bool LineReader::read_raw() {
  if (rest_of_line_) {
    rest_of_line_ = false;
    guard(input_, *this, [&] { input_.ignore(std::numeric_limits<std::streamsize>::max(), '\n'); });
    next_offset_ += input_.gcount();
  }
  if (!input_.good()) return false;
  line_.clear();
  offset_ = next_offset_;
  std::array<char, kPiece> piece;
  bool ended = false;
  while (!ended) {
    guard(input_, *this, [&] { input_.getline(piece.data(), piece.size()); });
    const std::streamsize count = input_.gcount();
    next_offset_ += count;
    if (input_.eof()) {  // the file ends, perhaps in a line without an end
      line_.append(piece.data(), static_cast<size_t>(count));
      const bool only_mark = offset_ == 0 && line_ == kByteOrderMark;
      if (line_.empty() || only_mark) return false;
      ended = true;
    } else if (input_.fail()) {  // the piece is full
      line_.append(piece.data(), static_cast<size_t>(count));
      input_.clear(input_.rdstate() & ~std::ios::failbit);
    } else {
      line_.append(piece.data(), static_cast<size_t>(count - 1));
      ended = true;
    }
    if (number_ == 0) refuse_packed();
    if (std::cmp_greater(line_.size(), options_.limits.line_bytes)) {
      rest_of_line_ = !ended;
      ++number_;
      fail(ErrorKind::data, "{}:{}: the line is longer than {} bytes", name_, number_,
           options_.limits.line_bytes);
    }
  }
  ++number_;
  return true;
}

// Before anything else is: what stands in a stream cannot be looked at twice.
void LineReader::refuse_packed() const {
  const bool gzip = line_.starts_with("\x1F\x8B"), zip = line_.starts_with("PK\x03\x04");
  if (!gzip && !zip) return;
  fail(ErrorKind::data, "{}: expected text, got data packed by {}; unpack it first, by {}", name_,
       gzip ? "gzip" : "zip", gzip ? "gunzip -c" : "unzip -p");
}

void LineReader::drop_marks() {
  if (line_.ends_with('\r')) line_.pop_back();
  if (number_ == 1 && line_.starts_with(kByteOrderMark)) line_.erase(0, kByteOrderMark.size());
}

void LineReader::require_utf8() {
  const std::optional<size_t> wrong = first_invalid_utf8(line_);
  if (!wrong) return;
  if (options_.invalid == InvalidUtf8::refuse) {
    fail(ErrorKind::data, "{}:{}: invalid UTF-8 at byte {} of the line (offset {} of the input)",
         name_, number_, *wrong + 1, offset_ + static_cast<int64_t>(*wrong));
  }
  line_ = replace_invalid_utf8(line_, replaced_);
}

}  // namespace rapt::text
