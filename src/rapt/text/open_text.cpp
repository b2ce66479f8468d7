#include "rapt/text/open_text.h"

#include <zlib.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "rapt/base/check.h"
#include "rapt/text/unpacked_stream.h"
#include "rapt/text/zip.h"

namespace rapt::text {
namespace {

std::ifstream open(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    fail(ErrorKind::data, "{}: expected a text file, got a folder", path.string());
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file)
    fail(ErrorKind::data, "{}: cannot read it: {}", path.string(),
         std::generic_category().message(errno));
  return file;
}

// The unpacked bytes of a gzip file, of any number of members, a buffer at a time. What is wrong is
// thrown as std::runtime_error.
class Unpacker : public std::streambuf {
 public:
  explicit Unpacker(std::ifstream file) : file_(std::move(file)) {
    constexpr int kGzip = 15 + 16;  // the largest window, with gzip's header
    if (inflateInit2(&stream_, kGzip) != Z_OK) throw std::bad_alloc();
  }
  ~Unpacker() override { inflateEnd(&stream_); }
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;

 protected:
  int_type underflow() override {
    stream_.next_out = reinterpret_cast<Bytef*>(text_.data());
    stream_.avail_out = static_cast<uInt>(text_.size());
    while (stream_.avail_out == text_.size()) {
      if (stream_.avail_in == 0 && !read_packed()) {
        if (!between_members_) throw std::runtime_error("the gzip data is cut off");
        return traits_type::eof();
      }
      between_members_ = false;
      const int result = inflate(&stream_, Z_NO_FLUSH);
      if (result == Z_STREAM_END) {  // another member may follow
        between_members_ = true;
        inflateReset(&stream_);
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        throw std::runtime_error("the gzip data is damaged");
      }
    }
    setg(text_.data(), text_.data(), text_.data() + (text_.size() - stream_.avail_out));
    return traits_type::to_int_type(*gptr());
  }

 private:
  bool read_packed() {
    file_.read(packed_.data(), static_cast<std::streamsize>(packed_.size()));
    if (file_.bad()) throw std::runtime_error("reading fails");
    stream_.next_in = reinterpret_cast<Bytef*>(packed_.data());
    stream_.avail_in = static_cast<uInt>(file_.gcount());
    return stream_.avail_in > 0;
  }

  std::ifstream file_;
  z_stream stream_{};
  bool between_members_ = false;
  std::array<char, 1 << 16> packed_{}, text_{};
};

}  // namespace

std::unique_ptr<std::istream> open_text(const std::filesystem::path& path) {
  std::ifstream file = open(path);
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored))  // a pipe cannot be looked at twice
    return std::make_unique<std::ifstream>(std::move(file));
  if (is_zip(file)) return open_zipped(std::move(file), path.string());
  std::array<char, 2> start{};
  file.read(start.data(), start.size());
  const bool packed = file.gcount() == 2 && start[0] == '\x1F' && start[1] == '\x8B';
  file.clear();
  file.seekg(0);
  if (packed) return std::make_unique<UnpackedStream<Unpacker>>(std::move(file));
  return std::make_unique<std::ifstream>(std::move(file));
}

}  // namespace rapt::text
