// Text in zip archives: read as it is when it is whole, refused with a reason when it is not.
#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/testing/testing.h"
#include "tests/text/lines_of_file.h"

namespace rapt::text {
namespace {

using testing::error_of;
using Lines = std::vector<std::string>;

struct File {
  std::string name, text;
  bool deflated = true;
  uint16_t flags = 0;
  int method = -1;  // instead of the true one
};

std::string little(uint32_t value, int bytes) {
  std::string s;
  for (int i = 0; i < bytes; ++i) s += static_cast<char>(value >> 8 * i & 0xFF);
  return s;
}

std::string deflated(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&stream, text.size()) + 16, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string zip(const std::vector<File>& files, const std::string& comment = "") {
  std::string data, list;
  for (const File& f : files) {
    const std::string packed = f.deflated ? deflated(f.text) : f.text;
    const int method = f.method >= 0 ? f.method : f.deflated ? 8 : 0;
    const auto crc = static_cast<uint32_t>(
        crc32(0, reinterpret_cast<const Bytef*>(f.text.data()), static_cast<uInt>(f.text.size())));
    const std::string common = little(20, 2) + little(f.flags, 2) +
                               little(static_cast<uint32_t>(method), 2) + little(0, 4) +
                               little(crc, 4) + little(static_cast<uint32_t>(packed.size()), 4) +
                               little(static_cast<uint32_t>(f.text.size()), 4) +
                               little(static_cast<uint32_t>(f.name.size()), 2);
    list += "PK\1\2" + little(20, 2) + common + std::string(12, '\0') +
            little(static_cast<uint32_t>(data.size()), 4) + f.name;
    data += "PK\3\4" + common + little(3, 2) + f.name + "xyz" + packed;
  }
  const auto count = static_cast<uint32_t>(files.size());
  return data + list + "PK\5\6" + std::string(4, '\0') + little(count, 2) + little(count, 2) +
         little(static_cast<uint32_t>(list.size()), 4) +
         little(static_cast<uint32_t>(data.size()), 4) +
         little(static_cast<uint32_t>(comment.size()), 2) + comment;
}

void expect_refused(const std::string& content, const std::string& why) {
  const std::string complaint = error_of([&] { lines_of_file(content); });
  EXPECT_NE(complaint.find(why), std::string::npos) << complaint;
}

TEST(Zip, TheOneFileIsRead) {
  EXPECT_EQ(lines_of_file(zip({{"a.txt", "one\ntwo"}})), (Lines{"one", "two"}));
  EXPECT_EQ(lines_of_file(zip({{"a.txt", "one\r\ntwo\n", false}})), (Lines{"one", "two"}));
  EXPECT_EQ(lines_of_file(zip({{"a.txt", ""}})), Lines{});
  EXPECT_EQ(lines_of_file(zip({{"a.txt", "", false}})), Lines{});
  EXPECT_EQ(lines_of_file(zip({{"a.txt", "one"}}, "PK\5\6 is in this comment")), Lines{"one"});
}

// Tatoeba's archives have a note beside the sentences, those of a Mac its folders.
TEST(Zip, NotesAndFoldersDoNotCount) {
  EXPECT_EQ(lines_of_file(zip({{"_about.txt", "a note"},
                               {"deep/", "", false},
                               {"__MACOSX/deep/._fra.txt", "?"},
                               {".hidden", "?"},
                               {"deep/fra.txt", "Go.\tVa !\tCC-BY 2.0 (France)\n"}})),
            Lines{"Go.\tVa !\tCC-BY 2.0 (France)"});
}

TEST(Zip, ALongTextComesInManyPieces) {
  std::string text;
  for (int i = 0; i < 60'000; ++i) text += "line " + std::to_string(i * 7919 % 60'000) + "\n";
  for (const bool packed : {true, false}) {
    const Lines lines = lines_of_file(zip({{"a.txt", text, packed}}));
    ASSERT_EQ(lines.size(), 60'000U);
    EXPECT_EQ(lines[59'999], "line " + std::to_string(59'999 * 7919 % 60'000));
  }
}

TEST(Zip, WhatIsNotOneReadableFileIsRefused) {
  expect_refused(zip({}), "expected a zip archive with one file, got none");
  expect_refused(zip({{"_about.txt", "a"}}), "got none");
  expect_refused(zip({{"a.txt", "a"}, {"b.txt", "b"}}), "got 2");
  expect_refused(zip({{"a.txt", "a", true, 1}}), "is encrypted");
  expect_refused(zip({{"a.txt", "a", true, 0, 12}}), "is packed by method 12");
  std::string huge = zip({{"a.txt", "a"}});
  huge.replace(huge.size() - 6, 4, "\xFF\xFF\xFF\xFF");
  expect_refused(huge, "4 GiB");
  std::string long_list = zip({{"a.txt", "a"}});
  long_list.replace(long_list.size() - 10, 4, little(0xFFFFFFFE, 4));
  expect_refused(long_list, "damaged or cut off");
  std::string split = zip({{"a.txt", "a"}});
  split[split.size() - 18] = 1;
  expect_refused(split, "split over several");
}

TEST(Zip, DamageIsAnErrorWhereverItStands) {
  const std::string whole = zip({{"a.txt", "one and two and three\n"}});
  for (size_t cut = 4; cut < whole.size(); ++cut)
    expect_refused(whole.substr(0, cut), "damaged or cut off");
  int read = 0;
  for (size_t at = 4; at < whole.size(); ++at) {
    for (const int bits : {1, 0x80, 0xFF}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ bits);
      try {  // dates, versions and names do not matter
        EXPECT_EQ(lines_of_file(damaged), Lines{"one and two and three"}) << "byte " << at;
        ++read;
      } catch (const Error&) {
      }
    }
  }
  EXPECT_GT(read, 0);
}

// A text that claims to be shorter, or longer, than it is.
TEST(Zip, ATextOfAnotherSizeThanItSaysIsDamaged) {
  const std::string whole = zip({{"a.txt", std::string(300'000, 'a')}});
  const size_t list = whole.rfind("PK\1\2");
  for (const uint32_t bytes : {0U, 10U, 299'999U, 300'001U, 4'000'000'000U}) {
    std::string lying = whole;
    lying.replace(list + 24, 4, little(bytes, 4));
    expect_refused(lying, "the zip data is damaged");
  }
}

TEST(Zip, TatoebasPairsAreReadFromTheirArchive) {
  RAPT_REQUIRE_DATA("tatoeba-en-fr/fra-eng-2017.zip");
  LineReader reader(testing::data_dir() / "tatoeba-en-fr/fra-eng-2017.zip");
  EXPECT_EQ(*reader.next(), "Go.\tVa !");
  int64_t bytes = 9;  // with its end
  while (const auto line = reader.next()) bytes += static_cast<int64_t>(line->size()) + 1;
  EXPECT_EQ(bytes, 10'009'515);
}

}  // namespace
}  // namespace rapt::text
