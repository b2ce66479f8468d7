#include "rapt/text/lines.h"

#include <array>
#include <fstream>
#include <sstream>
#include <vector>

#include "tests/testing/testing.h"
#include "tests/text/lines_of_file.h"

namespace rapt::text {
namespace {

using testing::error_of;
using testing::TemporaryFolder;
using Lines = std::vector<std::string>;

Lines lines_of(const std::string& content, const LineOptions& options = {}) {
  std::istringstream input(content);
  LineReader reader(input, "input", options);
  Lines lines;
  while (const auto line = reader.next()) {
    lines.emplace_back(*line);
    EXPECT_EQ(reader.number(), static_cast<int64_t>(lines.size()));
  }
  EXPECT_FALSE(reader.next().has_value());
  return lines;
}

TEST(LineReader, LastLineNeedsNoLineFeed) {
  EXPECT_EQ(lines_of("a\nb"), (Lines{"a", "b"}));
  EXPECT_EQ(lines_of("a\nb\n"), (Lines{"a", "b"}));
}

TEST(LineReader, R36_EmptyLinesAreLines) {
  EXPECT_EQ(lines_of("a\n\nb\n"), (Lines{"a", "", "b"}));
  EXPECT_EQ(lines_of("\n"), (Lines{""}));
  EXPECT_EQ(lines_of(""), Lines{});
  EXPECT_EQ(lines_of("   \n"), (Lines{"   "}));
}

TEST(LineReader, R38_OnlyLineFeedEndsALine) {
  for (const std::string text : {"a\u0085b", "a\u2028b", "a\u2029b", "a\vb", "a\fb", "a\rb"}) {
    EXPECT_EQ(lines_of(text + "\nc\n"), (Lines{text, "c"}));
  }
}

TEST(LineReader, R39_CarriageReturnAndByteOrderMarkAreDroppedOnce) {
  EXPECT_EQ(lines_of("a b\r\nc\r\n"), lines_of("a b\nc\n"));
  EXPECT_EQ(lines_of("a\r\r\nb\r"), (Lines{"a\r", "b"}));
  EXPECT_EQ(lines_of("\xEF\xBB\xBF"
                     "a\n\xEF\xBB\xBF"
                     "b\n"),
            (Lines{"a",
                   "\xEF\xBB\xBF"
                   "b"}));
  EXPECT_EQ(lines_of("\xEF\xBB\xBF"), Lines{});
  EXPECT_EQ(lines_of("\xEF\xBB\xBF\r\n"), (Lines{""}));
}

struct Invalid {
  std::string bytes;
  std::string replaced;
};

const Invalid kInvalid[] = {
    {"\xFF", "\uFFFD"},
    {"\xE9", "\uFFFD"},
    {"\x8E", "\uFFFD"},
    {"\xE2\x82", "\uFFFD"},                            // cut short
    {"\xC0\xAF", "\uFFFD\uFFFD"},                      // overlong
    {"\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},  // above U+10FFFF
    {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"},            // a surrogate
};

TEST(LineReader, R40_InvalidUtf8IsRefusedWithLineAndByte) {
  for (const Invalid& invalid : kInvalid) {
    const std::string message = error_of([&] {
      lines_of(
          "\xEF\xBB\xBF"
          "\xC3\xA9\nab " +
          invalid.bytes + " c\n");
    });
    EXPECT_NE(message.find("input:2: invalid UTF-8 at byte 4 of the line (offset 9"),
              std::string::npos)
        << message;
  }
  EXPECT_NE(error_of([] { lines_of("a\n\xE2\x82"); }).find("input:2: invalid UTF-8 at byte 1"),
            std::string::npos);
}

TEST(LineReader, R40_InvalidUtf8IsReplacedWhereAskedFor) {
  for (const Invalid& invalid : kInvalid) {
    EXPECT_EQ(lines_of("a" + invalid.bytes + "b\nc", {.invalid = InvalidUtf8::replace}),
              (Lines{"a" + invalid.replaced + "b", "c"}));
  }
  std::istringstream input("\xFF\xFF\n\xFE");
  LineReader reader(input, "input", {.invalid = InvalidUtf8::replace});
  while (reader.next()) {
  }
  EXPECT_EQ(reader.replaced(), 3);
}

TEST(LineReader, R40_NulIsACharacter) {
  const std::string text("a\0b", 3);
  EXPECT_EQ(lines_of(text + "\n"), (Lines{text}));
}

TEST(LineReader, GoesOnAfterALineThatIsNotUtf8) {
  std::istringstream input("a\n\xFF\nb\n");
  LineReader reader(input, "input");
  EXPECT_EQ(reader.next(), "a");
  error_of([&] { reader.next(); });
  EXPECT_EQ(reader.next(), "b");
  EXPECT_EQ(reader.number(), 3);
}

TEST(LineReader, LongLinesAreReadUpToTheLimit) {
  for (const size_t length : {65534u, 65535u, 65536u, 65537u, 131070u, 1'000'000u}) {
    const std::string text(length, 'x');
    EXPECT_EQ(lines_of("a\n" + text + "\nb"), (Lines{"a", text, "b"})) << length;
    EXPECT_EQ(lines_of(text), (Lines{text})) << length;
  }
  LineOptions options;
  options.limits.line_bytes = 10;
  EXPECT_EQ(lines_of("0123456789\n", options), (Lines{"0123456789"}));
  const std::string message = error_of([&] { lines_of("a\n0123456789x\n", options); });
  EXPECT_EQ(message, "input:2: the line is longer than 10 bytes");
}

TEST(LineReader, GoesOnAfterALineThatIsTooLong) {
  LineOptions options;
  options.limits.line_bytes = 10;
  const std::string long_line(200'000, 'x');
  for (const std::string& text : {std::string("0123456789x"), long_line}) {
    std::istringstream input("a\n" + text + "\nb\n");
    LineReader reader(input, "input", options);
    EXPECT_EQ(reader.next(), "a");
    error_of([&] { reader.next(); });
    EXPECT_EQ(reader.number(), 2);
    EXPECT_EQ(reader.next(), "b");
    EXPECT_EQ(reader.number(), 3);
    EXPECT_FALSE(reader.next());
  }
  std::istringstream last(long_line);
  LineReader reader(last, "input", options);
  error_of([&] { reader.next(); });
  EXPECT_FALSE(reader.next());
}

// An endless line must be refused long before it ends.
TEST(LineReader, EndlessLineIsRefusedAtTheLimit) {
  struct Endless : std::streambuf {
    char block[4096];
    int64_t given = 0;
    int_type underflow() override {
      std::fill(std::begin(block), std::end(block), 'x');
      setg(block, block, std::end(block));
      given += 4096;
      return 'x';
    }
  } source;
  std::istream input(&source);
  LineReader reader(input, "input");
  error_of([&] { reader.next(); });
  EXPECT_LT(source.given, 17'000'000);
}

TEST(LineReader, FilesAreReadAsStreamsAre) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "a.txt") << "\xEF\xBB\xBFx y\r\n\nz";
  LineReader reader(folder.path() / "a.txt");
  EXPECT_EQ(reader.next(), "x y");
  EXPECT_EQ(reader.next(), "");
  EXPECT_EQ(reader.next(), "z");
  EXPECT_EQ(reader.next(), std::nullopt);
  EXPECT_EQ(reader.number(), 3);
}

TEST(LineReader, MissingFileAndFolderAreErrors) {
  const TemporaryFolder folder;
  try {
    LineReader reader(folder.path() / "none.txt");
    FAIL() << "a missing file was opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_NE(std::string(error.what()).find("none.txt: cannot read it: No such file"),
              std::string::npos);
  }
  EXPECT_NE(error_of([&] { LineReader reader(folder.path()); }).find("got a folder"),
            std::string::npos);
}

// What Python's gzip.compress makes of "one\n", of "two\nthree", and of "one\r\ntwo\r\n" after a
// byte-order mark.
const std::string kPackedOne = std::string(
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xcb\xcf\x4b\xe5\x02\x00\x9f\xa8\x17\xf8\x04\x00\x00"
    "\x00",
    24);
const std::string kPackedTwo = std::string(
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x2b\x29\xcf\xe7\x2a\xc9\x28\x4a\x4d\x05\x00\x7c\x2e"
    "\x51\xb1\x09\x00\x00\x00",
    29);
const std::string kPackedMarks = std::string(
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x7b\xbf\x7b\x7f\x7e\x5e\x2a\x2f\x57\x49\x79\x3e\x2f"
    "\x17\x00\x87\x37\xd2\x4f\x0d\x00\x00\x00",
    33);

TEST(LineReader, PackedFilesAreReadUnpacked) {
  EXPECT_EQ(lines_of_file(kPackedOne), Lines{"one"});
  EXPECT_EQ(lines_of_file(kPackedOne + kPackedTwo), (Lines{"one", "two", "three"}));
  EXPECT_EQ(lines_of_file(kPackedMarks), (Lines{"one", "two"}));
  EXPECT_EQ(lines_of_file("\x1F"), Lines{"\x1F"});  // half of the mark is text
}

TEST(LineReader, DamagedPackedFilesAreErrors) {
  for (size_t cut = 2; cut < kPackedTwo.size(); ++cut) {
    const std::string complaint = error_of([&] { lines_of_file(kPackedTwo.substr(0, cut)); });
    EXPECT_NE(complaint.find("reading fails"), std::string::npos) << cut;
    EXPECT_NE(complaint.find("the gzip data is cut off"), std::string::npos) << complaint;
  }
  for (const size_t at : {size_t{3}, size_t{12}, kPackedTwo.size() - 6}) {
    std::string damaged = kPackedTwo;
    damaged[at] = static_cast<char>(damaged[at] ^ 0xFF);
    error_of([&] { lines_of_file(damaged); });
  }
  error_of([&] { lines_of_file(kPackedOne + "rest"); });
}

// A line without an end, until reading fails.
class TornTape : public std::streambuf {
  int_type underflow() override {
    if (++blocks_ > 8) throw std::runtime_error("the tape is torn");
    block_.fill('a');
    setg(block_.data(), block_.data(), block_.data() + block_.size());
    return 'a';
  }
  int blocks_ = 0;
  std::array<char, 1 << 16> block_{};
};

TEST(LineReader, ReadingThatFailsInsideARefusedLineIsNoEnd) {
  TornTape tape;
  std::istream input(&tape);
  LineReader reader(input, "tape", {.limits = {.line_bytes = 100}});
  EXPECT_NE(error_of([&] { reader.next(); }).find("tape:1: the line is longer"), std::string::npos);
  EXPECT_NE(error_of([&] { reader.next(); }).find("reading fails after line 1"), std::string::npos);
}

}  // namespace
}  // namespace rapt::text
