// What the file functions share: an open file, failures named by operation and path, and the faults
// that tests put in. For sources only.
#pragma once

#include <filesystem>
#include <string_view>

namespace rapt {

// An open file or folder, closed with the object.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  int release();  // gives the number away

 private:
  int number_ = -1;
};

// Opens `path`, closed at exec; not open where that fails (errno says why).
Descriptor open_file(const std::filesystem::path& path, int flags, unsigned mode = 0);

// Throws Error "cannot <what> <path>: <the system's words for the errno `code`>".
[[noreturn]] void fail_file(std::string_view what, const std::filesystem::path& path, int code);

// The errno that set_file_fault() asks this operation to fail with; 0 for none.
int file_fault(std::string_view operation, const std::filesystem::path& path);

// Brings the file or folder to the disk; throws Error.
void sync_file(const Descriptor& file, const std::filesystem::path& path);
void sync_path(const std::filesystem::path& path);

}  // namespace rapt
