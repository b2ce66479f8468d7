#include "rapt/models/safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "rapt/base/check.h"
#include "rapt/models/safetensors_convert.h"
#include "rapt/models/safetensors_header.h"

namespace rapt::models {

static_assert(std::endian::native == std::endian::little, "the format is little endian");

namespace {

constexpr int64_t kPiece = 1 << 20;  // bytes read and converted at once
constexpr int64_t kLengthBytes = 8;

[[noreturn]] void fail_errno(const std::string& name, const char* what) {
  fail(ErrorKind::model, "{}: {}: {}", name, what, std::generic_category().message(errno));
}

// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(const std::filesystem::path& path)
      : name_(path.string()), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (fd_ < 0) fail_errno(name_, "cannot open it");
  }
  ~Descriptor() { ::close(fd_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int64_t size() const {
    struct stat status {};
    if (::fstat(fd_, &status) != 0) fail_errno(name_, "cannot read its size");
    if (!S_ISREG(status.st_mode)) fail(ErrorKind::model, "{}: expected a file", name_);
    return status.st_size;
  }

  void read(int64_t offset, void* out, int64_t count) const {
    auto* to = static_cast<char*>(out);
    while (count > 0) {
      const ssize_t got = ::pread(fd_, to, static_cast<size_t>(count), offset);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail_errno(name_, "reading fails");
      if (got == 0) fail(ErrorKind::model, "{}: the file was shortened while it was read", name_);
      to += got;
      offset += got;
      count -= got;
    }
  }

 private:
  std::string name_;
  int fd_;
};

SafetensorsHeader read_header(const Descriptor& file, const std::string& name,
                              const Limits& limits) {
  const int64_t size = file.size();
  if (size < kLengthBytes + 2) {
    fail(ErrorKind::model, "{}: expected a safetensors file, got {} bytes", name, size);
  }
  uint64_t length = 0;
  file.read(0, &length, kLengthBytes);
  if (std::cmp_greater(length, limits.header_bytes)) {
    fail(ErrorKind::model,
         "{}: a header of {} bytes, at most {} are accepted; is this a safetensors file?", name,
         length, limits.header_bytes);
  }
  if (std::cmp_greater(length, size - kLengthBytes)) {
    fail(ErrorKind::model, "{}: a header of {} bytes in a file of {}: the file was cut short", name,
         length, size);
  }
  std::string text(length, '\0');
  file.read(kLengthBytes, text.data(), static_cast<int64_t>(length));
  const int64_t data_begin = kLengthBytes + static_cast<int64_t>(length);
  return parse_safetensors_header(text, data_begin, size - data_begin, name, limits);
}

}  // namespace

struct SafetensorsFile::State {
  State(const std::filesystem::path& path, const Limits& limits)
      : name(path.string()), file(path), header(read_header(file, name, limits)) {
    by_name.reserve(header.tensors.size());
    for (const TensorInfo& tensor : header.tensors) by_name.push_back(&tensor);
    std::sort(by_name.begin(), by_name.end(), [](auto* a, auto* b) { return a->name < b->name; });
  }

  std::string name;
  Descriptor file;
  SafetensorsHeader header;
  std::vector<const TensorInfo*> by_name;
};

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path, const Limits& limits)
    : state_(std::make_unique<State>(path, limits)) {}
SafetensorsFile::~SafetensorsFile() = default;
SafetensorsFile::SafetensorsFile(SafetensorsFile&&) noexcept = default;
SafetensorsFile& SafetensorsFile::operator=(SafetensorsFile&&) noexcept = default;

std::span<const TensorInfo> SafetensorsFile::tensors() const { return state_->header.tensors; }
const Metadata& SafetensorsFile::metadata() const { return state_->header.metadata; }

const TensorInfo* SafetensorsFile::find(std::string_view name) const {
  const auto found =
      std::lower_bound(state_->by_name.begin(), state_->by_name.end(), name,
                       [](auto* info, std::string_view key) { return info->name < key; });
  return found != state_->by_name.end() && (*found)->name == name ? *found : nullptr;
}

const TensorInfo& SafetensorsFile::at(std::string_view name) const {
  const TensorInfo* info = find(name);
  if (info == nullptr) fail(ErrorKind::model, "{}: there is no tensor {}", state_->name, name);
  return *info;
}

void SafetensorsFile::read_into(const TensorInfo& info, void* out, int64_t count,
                                DType dtype) const {
  const std::string who = fmt::format("{}: tensor {}", state_->name, info.name);
  RAPT_CHECK(count == info.numel, "{}: expected room for {} elements, got {}", who, info.numel,
             count);
  const Conversion convert = conversion(info.type, dtype);
  if (convert == nullptr) {
    fail(ErrorKind::model, "{}: cannot read {} as {}", who, file_type_name(info.type),
         dtype_name(dtype));
  }
  if (file_type(dtype) == info.type && dtype != DType::boolean) {
    state_->file.read(info.offset, out, info.bytes);
    return;
  }
  const int64_t width = size_of(info.type), step = kPiece / width;
  std::vector<std::byte> piece(static_cast<size_t>(std::min(info.bytes, step * width)));
  for (int64_t begin = 0; begin < count; begin += step) {
    const int64_t elements = std::min(step, count - begin);
    state_->file.read(info.offset + begin * width, piece.data(), elements * width);
    const int64_t bad = convert(
        piece.data(), static_cast<std::byte*>(out) + begin * rapt::size_of(dtype), elements);
    if (bad < elements) {
      fail(ErrorKind::model, "{}: element {} is out of range for {}", who, begin + bad,
           dtype_name(dtype));
    }
  }
}

Tensor SafetensorsFile::load(const TensorInfo& info, DType dtype) const {
  Tensor tensor =
      with_error_kind(ErrorKind::model, fmt::format("{}: tensor {}", state_->name, info.name),
                      [&] { return Tensor::empty(Shape(info.shape), dtype); });
  read_into(info, tensor.raw(), info.numel, dtype);
  return tensor;
}

}  // namespace rapt::models
