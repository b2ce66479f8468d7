// Files: mapped reading, and writing that leaves either the old file or the whole new one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace rapt {

// A file mapped for reading. The size is that of the moment of opening; a file that another process
// shortens afterwards must not be read through the mapping (use read_file then).
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);  // throws Error: missing, not a file, unreadable
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const;
  // Drops the pages of [0, end) from memory; they are read again from the file when touched.
  void release(size_t end) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The whole file as bytes; at most `limit` of them, else Error.
std::string read_file(const std::filesystem::path& path, int64_t limit = int64_t{1} << 40);

// Writes a file through a temporary name in the same folder: write, fsync, rename, fsync of the
// folder. Until commit() returns, whatever stood under the name stays; a writer that is destroyed
// without commit removes its temporary file.
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  void commit();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

void write_file(const std::filesystem::path& path, std::string_view text);

// Makes every file of a folder at once: `fill` writes into a temporary sibling folder, which is
// fsynced and takes the name of `path` only when complete. A folder that stood there is replaced, and
// is intact if anything fails.
void write_folder(const std::filesystem::path& path, const std::function<void(const std::filesystem::path& temporary)>& fill);

// For tests: called before every write, fsync and rename with the operation's name ("write", "fsync",
// "rename"); a returned errno other than 0 is taken as the operation's failure.
void set_file_fault(std::function<int(std::string_view operation, const std::filesystem::path& path)> fault);

}  // namespace rapt
