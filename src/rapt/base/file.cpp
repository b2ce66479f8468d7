#include "rapt/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "rapt/base/check.h"
#include "rapt/base/descriptor.h"
#include "rapt/base/replace.h"

namespace rapt {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBuffer = size_t{256} << 10;
constexpr size_t kMostAtOnce = size_t{1} << 30;  // Linux moves at most 2 GiB in one call

struct stat status_of(const Descriptor& file, const fs::path& path) {
  struct stat status {};
  if (fstat(file.number(), &status) != 0) fail_file("read", path, errno);
  if (S_ISDIR(status.st_mode)) fail_file("read", path, EISDIR);
  return status;
}

// Up to `bytes` of the file, from where it stands; 0 at its end.
size_t read_some(const Descriptor& file, const fs::path& path, char* data, size_t bytes) {
  if (const int code = file_fault("read", path)) fail_file("read", path, code);
  for (;;) {
    const ssize_t count = ::read(file.number(), data, std::min(bytes, kMostAtOnce));
    if (count >= 0) return static_cast<size_t>(count);
    if (errno != EINTR) fail_file("read", path, errno);
  }
}

[[noreturn]] void fail_limit(const fs::path& path, int64_t limit) {
  fail(ErrorKind::failure, "cannot read {}: expected at most {} bytes, it has more", path.string(),
       limit);
}

// A file that tells no size: a pipe, or what the kernel makes up as it is read.
std::string read_to_end(const Descriptor& file, const fs::path& path, int64_t limit) {
  std::string text;
  for (;;) {
    const size_t before = text.size();
    text.resize(before + kBuffer);
    const size_t count = read_some(file, path, text.data() + before, kBuffer);
    text.resize(before + count);
    if (count == 0) return text;
    if (std::cmp_greater(text.size(), limit)) fail_limit(path, limit);
  }
}

}  // namespace

struct MappedFile::State {
  void* data = nullptr;
  size_t size = 0;
};

MappedFile::MappedFile(const fs::path& path) : state_(std::make_unique<State>()) {
  const Descriptor file = open_file(path, O_RDONLY);
  if (!file.is_open()) fail_file("read", path, errno);
  const struct stat status = status_of(file, path);
  RAPT_CHECK(S_ISREG(status.st_mode), "cannot map {}: expected a file, got a pipe or a device",
             path.string());
  const size_t size = static_cast<size_t>(status.st_size);
  if (size == 0) return;
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number(), 0);
  if (data == MAP_FAILED) fail_file("map", path, errno);
  state_->data = data;
  state_->size = size;
}

MappedFile::~MappedFile() {
  if (state_->size > 0) munmap(state_->data, state_->size);
}

std::span<const std::byte> MappedFile::bytes() const {
  return {static_cast<const std::byte*>(state_->data), state_->size};
}

void MappedFile::release(size_t end) const {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t whole = std::min(end, state_->size) / page * page;
  if (whole > 0) madvise(state_->data, whole, MADV_DONTNEED);
}

std::string read_file(const fs::path& path, int64_t limit) {
  const Descriptor file = open_file(path, O_RDONLY);
  if (!file.is_open()) fail_file("read", path, errno);
  const struct stat status = status_of(file, path);
  if (status.st_size > limit) fail_limit(path, limit);
  if (!S_ISREG(status.st_mode) || status.st_size == 0) return read_to_end(file, path, limit);

  std::string text(static_cast<size_t>(status.st_size), '\0');
  for (size_t done = 0; done < text.size();) {
    const size_t count = read_some(file, path, text.data() + done, text.size() - done);
    RAPT_CHECK(count > 0, "cannot read {}: it had {} bytes and was cut to {} while it was read",
               path.string(), text.size(), done);
    done += count;
  }
  return text;
}

struct AtomicFile::State {
  explicit State(const fs::path& path) : target(resolve_target(path, Make::file)) {
    clear_leftovers(target);
    temporary.emplace(target, Make::file);
    struct stat old {};
    if (stat(target.c_str(), &old) == 0) fchmod(temporary->file().number(), old.st_mode & 0777);
  }

  // The file that is written; a writer that failed or is done has none.
  Temporary& open() {
    RAPT_CHECK(temporary.has_value(), "cannot write {}: the writer is closed", target.string());
    return *temporary;
  }

  void write(const char* data, size_t bytes) {
    while (bytes > 0) {
      if (const int code = file_fault("write", target)) fail_file("write", target, code);
      const ssize_t count = ::write(open().file().number(), data, std::min(bytes, kMostAtOnce));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail_file("write", target, errno);
      data += count;
      bytes -= static_cast<size_t>(count);
    }
  }

  void flush() {
    write(buffer.data(), buffer.size());
    buffer.clear();
  }

  // Runs `step`; where it fails, the temporary file goes.
  template <class Step>
  void guard(Step&& step) {
    try {
      step();
    } catch (...) {
      temporary.reset();
      throw;
    }
  }

  fs::path target;
  std::optional<Temporary> temporary;
  std::string buffer;
};

AtomicFile::AtomicFile(const fs::path& path) : state_(std::make_unique<State>(path)) {}
AtomicFile::~AtomicFile() = default;

void AtomicFile::write(std::span<const std::byte> bytes) {
  write(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

void AtomicFile::write(std::string_view text) {
  state_->open();
  state_->guard([&] {
    if (state_->buffer.size() + text.size() > kBuffer) state_->flush();
    if (text.size() > kBuffer) return state_->write(text.data(), text.size());
    state_->buffer += text;
  });
}

void AtomicFile::commit() {
  state_->open();
  state_->guard([&] {
    state_->flush();
    sync_file(state_->temporary->file(), state_->target);
    state_->temporary->put_in_place();
  });
  state_->temporary.reset();
}

void write_file(const fs::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace rapt
