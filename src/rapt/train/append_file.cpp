#include "rapt/train/append_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace rapt::train {

AppendFile::AppendFile(const std::filesystem::path& path)
    : path_(path), file_(open_file(path, O_RDWR | O_CREAT | O_APPEND, 0666)) {
  if (!file_.is_open()) fail_file("write", path, errno);
}

void AppendFile::cut(size_t bytes) {
  if (ftruncate(file_.number(), static_cast<off_t>(bytes)) != 0) fail_file("write", path_, errno);
}

void AppendFile::write(std::string_view text) {
  while (!text.empty()) {
    if (const int code = file_fault("write", path_)) fail_file("write", path_, code);
    const ssize_t count = ::write(file_.number(), text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_file("write", path_, errno);
    text.remove_prefix(static_cast<size_t>(count));
  }
}

void AppendFile::sync() { sync_file(file_, path_); }

}  // namespace rapt::train
