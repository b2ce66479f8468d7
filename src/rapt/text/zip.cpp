#include "rapt/text/zip.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "rapt/base/check.h"
#include "rapt/text/unpacked_stream.h"

namespace rapt::text {
namespace {

constexpr std::string_view kFileMark = "PK\3\4", kEntryMark = "PK\1\2", kEndMark = "PK\5\6";
constexpr size_t kFileHeader = 30, kEntryHeader = 46, kEndHeader = 22;
constexpr uint32_t kMostList = 64 << 20;  // bytes of the list of files
constexpr uint16_t kEncrypted = 1, kStored = 0, kDeflated = 8;

// Numbers of a header, which has them with the low byte first.
uint16_t two_bytes(std::string_view header, size_t at) {
  return static_cast<uint16_t>(static_cast<uint8_t>(header[at]) |
                               static_cast<uint8_t>(header[at + 1]) << 8);
}
uint32_t four_bytes(std::string_view header, size_t at) {
  return two_bytes(header, at) | static_cast<uint32_t>(two_bytes(header, at + 2)) << 16;
}

// A file of an archive, as the list at its end describes it.
struct Entry {
  std::string name;
  uint16_t flags, method;
  uint32_t crc, packed_bytes, bytes, offset;
};

class Archive {
 public:
  Archive(std::ifstream file, std::string name) : file_(std::move(file)), name_(std::move(name)) {
    file_.seekg(0, std::ios::end);
    size_ = static_cast<uint64_t>(std::max<std::streamoff>(0, file_.tellg()));
  }

  // The one file, and where its data begin.
  std::pair<Entry, uint64_t> text() {
    std::vector<Entry> texts;
    for (Entry& entry : entries()) {
      const std::string base = entry.name.substr(entry.name.find_last_of('/') + 1);  // or all of it
      if (!base.empty() && base.front() != '_' && base.front() != '.')
        texts.push_back(std::move(entry));
    }
    if (texts.size() != 1) {
      fail(ErrorKind::data,
           "{}: expected a zip archive with one file, got {}; unpack it and name the file", name_,
           texts.empty() ? "none" : fmt::format("{}", texts.size()));
    }
    const Entry& entry = texts.front();
    if ((entry.flags & kEncrypted) != 0) refuse("is encrypted");
    if (entry.method != kStored && entry.method != kDeflated)
      refuse(fmt::format("is packed by method {}, expected deflate", entry.method));
    const std::string header = bytes(entry.offset, kFileHeader);
    if (!header.starts_with(kFileMark)) damaged();
    const uint64_t start =
        uint64_t{entry.offset} + kFileHeader + two_bytes(header, 26) + two_bytes(header, 28);
    if (start + entry.packed_bytes > size_) damaged();
    if (entry.method == kStored && entry.packed_bytes != entry.bytes) damaged();
    return {entry, start};
  }

  std::ifstream take() && { return std::move(file_); }

 private:
  std::vector<Entry> entries() {
    const std::string end = end_header();
    const uint16_t count = two_bytes(end, 10);
    const uint32_t bytes_of_list = four_bytes(end, 12), offset = four_bytes(end, 16);
    constexpr uint32_t kElsewhere = std::numeric_limits<uint32_t>::max();
    if (count == 0xFFFF || bytes_of_list == kElsewhere || offset == kElsewhere)
      refuse("is in the form for 4 GiB and more");
    if (two_bytes(end, 4) != 0 || two_bytes(end, 6) != 0 || two_bytes(end, 8) != count)
      refuse("is split over several archives");
    if (bytes_of_list > kMostList) damaged();
    const std::string list = bytes(offset, bytes_of_list);
    std::vector<Entry> entries;
    size_t at = 0;
    for (uint16_t i = 0; i < count; ++i) {
      if (list.size() - at < kEntryHeader) damaged();
      const std::string_view header = std::string_view(list).substr(at);
      if (!header.starts_with(kEntryMark)) damaged();
      const size_t name = two_bytes(header, 28),
                   whole = kEntryHeader + name + two_bytes(header, 30) + two_bytes(header, 32);
      if (header.size() < whole) damaged();
      entries.push_back({std::string(header.substr(kEntryHeader, name)), two_bytes(header, 8),
                         two_bytes(header, 10), four_bytes(header, 16), four_bytes(header, 20),
                         four_bytes(header, 24), four_bytes(header, 42)});
      at += whole;
    }
    return entries;
  }

  // What ends an archive; a comment of at most 64 KiB may stand behind it.
  std::string end_header() {
    const uint64_t most = std::min<uint64_t>(size_, kEndHeader + 0xFFFF);
    const std::string tail = bytes(size_ - most, most);
    for (size_t at = tail.size(); at-- > 0;) {
      const std::string_view header = std::string_view(tail).substr(at);
      if (header.starts_with(kEndMark) && header.size() >= kEndHeader &&
          header.size() - kEndHeader == two_bytes(header, 20)) {
        return std::string(header.substr(0, kEndHeader));
      }
    }
    damaged();
  }

  std::string bytes(uint64_t offset, uint64_t count) {
    if (offset > size_ || count > size_ - offset) damaged();
    std::string bytes(count, '\0');
    file_.clear();
    file_.seekg(static_cast<std::streamoff>(offset));
    file_.read(bytes.data(), static_cast<std::streamsize>(count));
    if (!file_) damaged();
    return bytes;
  }

  [[noreturn]] void refuse(const std::string& why) const {
    fail(ErrorKind::data, "{}: the file in this zip archive {}; unpack it and name the file", name_,
         why);
  }
  [[noreturn]] void damaged() const {
    fail(ErrorKind::data, "{}: the zip archive is damaged or cut off", name_);
  }

  std::ifstream file_;
  const std::string name_;
  uint64_t size_ = 0;
};

// The bytes of an archive's file, a buffer at a time. What is wrong is thrown as
// std::runtime_error.
class Unzipper : public std::streambuf {
 public:
  Unzipper(std::ifstream file, const Entry& entry, uint64_t start)
      : file_(std::move(file)), entry_(entry), packed_left_(entry.packed_bytes) {
    file_.clear();
    file_.seekg(static_cast<std::streamoff>(start));
    if (inflateInit2(&stream_, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ~Unzipper() override { inflateEnd(&stream_); }
  Unzipper(const Unzipper&) = delete;
  Unzipper& operator=(const Unzipper&) = delete;

 protected:
  int_type underflow() override {
    if (ended_) return traits_type::eof();
    const size_t count = entry_.method == kStored ? copy() : inflate_some();
    crc_ = crc32(crc_, reinterpret_cast<const Bytef*>(text_.data()), static_cast<uInt>(count));
    bytes_ += count;
    if (bytes_ > entry_.bytes) throw std::runtime_error("the zip data is damaged");
    if (count == 0) {
      ended_ = true;
      if (bytes_ != entry_.bytes || crc_ != entry_.crc)
        throw std::runtime_error("the zip data is damaged");
      return traits_type::eof();
    }
    setg(text_.data(), text_.data(), text_.data() + count);
    return traits_type::to_int_type(*gptr());
  }

 private:
  // Both return how many bytes of the text there are, 0 at its end.
  size_t copy() { return read(text_); }
  size_t inflate_some() {
    stream_.next_out = reinterpret_cast<Bytef*>(text_.data());
    stream_.avail_out = static_cast<uInt>(text_.size());
    while (!stream_ended_ && stream_.avail_out == text_.size()) {
      if (stream_.avail_in == 0) {
        stream_.avail_in = static_cast<uInt>(read(packed_));
        stream_.next_in = reinterpret_cast<Bytef*>(packed_.data());
        if (stream_.avail_in == 0) throw std::runtime_error("the zip data is damaged");
      }
      const int result = inflate(&stream_, Z_NO_FLUSH);
      stream_ended_ = result == Z_STREAM_END;
      if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
        throw std::runtime_error("the zip data is damaged");
    }
    return text_.size() - stream_.avail_out;
  }

  using Buffer = std::array<char, 1 << 16>;
  size_t read(Buffer& to) {
    const size_t count = std::min<size_t>(to.size(), packed_left_);
    file_.read(to.data(), static_cast<std::streamsize>(count));
    if (static_cast<size_t>(file_.gcount()) != count) throw std::runtime_error("reading fails");
    packed_left_ -= static_cast<uint32_t>(count);
    return count;
  }

  std::ifstream file_;
  const Entry entry_;
  uint32_t packed_left_;
  uint64_t bytes_ = 0;  // of the text so far
  uLong crc_ = 0;
  z_stream stream_{};
  bool stream_ended_ = false, ended_ = false;
  Buffer packed_{}, text_{};
};

}  // namespace

bool is_zip(std::istream& file) {
  std::array<char, 4> start{};
  file.read(start.data(), start.size());
  const bool zip = file.gcount() == 4 && (std::string_view(start.data(), 4) == kFileMark ||
                                          std::string_view(start.data(), 4) == kEndMark);
  file.clear();
  file.seekg(0);
  return zip;
}

std::unique_ptr<std::istream> open_zipped(std::ifstream file, const std::string& name) {
  Archive archive(std::move(file), name);
  const auto [entry, start] = archive.text();
  return std::make_unique<UnpackedStream<Unzipper>>(std::move(archive).take(), entry, start);
}

}  // namespace rapt::text
