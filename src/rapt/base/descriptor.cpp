#include "rapt/base/descriptor.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>

#include "rapt/base/check.h"
#include "rapt/base/file.h"

namespace rapt {
namespace {

using Fault = std::function<int(std::string_view, const std::filesystem::path&)>;

std::atomic<bool> fault_set{false};
std::mutex fault_mutex;

std::shared_ptr<Fault>& current_fault() {
  static std::shared_ptr<Fault> fault;
  return fault;
}

}  // namespace

void set_file_fault(Fault fault) {
  const std::lock_guard lock(fault_mutex);
  fault_set = fault != nullptr;
  current_fault() = fault == nullptr ? nullptr : std::make_shared<Fault>(std::move(fault));
}

int file_fault(std::string_view operation, const std::filesystem::path& path) {
  if (!fault_set) return 0;
  std::shared_ptr<Fault> fault;  // called without the lock: it may use files itself
  {
    const std::lock_guard lock(fault_mutex);
    fault = current_fault();
  }
  return fault == nullptr ? 0 : (*fault)(operation, path);
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

Descriptor::~Descriptor() {
  if (is_open()) close(number_);
}

int Descriptor::release() { return std::exchange(number_, -1); }

Descriptor open_file(const std::filesystem::path& path, int flags, unsigned mode) {
  int number = -1;
  do {
    number = open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (number < 0 && errno == EINTR);
  return Descriptor(number);
}

void fail_file(std::string_view what, const std::filesystem::path& path, int code) {
  fail(ErrorKind::failure, "cannot {} {}: {}", what, path.string(),
       std::generic_category().message(code));
}

void sync_file(const Descriptor& file, const std::filesystem::path& path) {
  int code = file_fault("fsync", path);
  // Some file systems know no fsync of a folder and say EINVAL.
  if (code == 0 && fsync(file.number()) != 0 && errno != EINVAL) code = errno;
  if (code != 0) fail_file("bring to the disk", path, code);
}

void sync_path(const std::filesystem::path& path) {
  const Descriptor file = open_file(path, O_RDONLY);
  if (!file.is_open()) fail_file("open", path, errno);
  sync_file(file, path);
}

}  // namespace rapt
