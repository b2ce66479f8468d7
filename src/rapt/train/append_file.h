// A file that a run writes behind what is there, and goes on with after a stop. For sources only.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>

#include "rapt/base/descriptor.h"

namespace rapt::train {

// Throws Error where the file cannot be written, in every function.
class AppendFile {
 public:
  explicit AppendFile(const std::filesystem::path& path);  // made where it is not there
  const std::filesystem::path& path() const { return path_; }
  void cut(size_t bytes);             // so many stay
  void write(std::string_view text);  // at once, but for what a full disk leaves of it
  void sync();                        // brings it to the disk

 private:
  std::filesystem::path path_;
  Descriptor file_;
};

}  // namespace rapt::train
