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

// A file mapped for reading. The size is that of the moment of opening. Touching a part of the
// mapping that another process has cut off since kills this process (SIGBUS): where that may
// happen, use read_file, which reports it.
class MappedFile {
 public:
  explicit MappedFile(
      const std::filesystem::path& path);  // throws Error: missing, not a file, unreadable
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

// The whole file as bytes; at most `limit` of them. Throws Error: missing, a folder, unreadable,
// over the limit, or cut by another process while it was read.
std::string read_file(const std::filesystem::path& path, int64_t limit = int64_t{1} << 40);

// Writes a file through a temporary name in the same folder: write, fsync, rename, fsync of the
// folder. Whatever stood under the name stays there until commit(), and if anything fails; a writer
// that fails or is destroyed without commit removes its temporary file. One that is killed leaves
// NAME.<numbers>.tmp, which the next writer of the same file removes. Links are followed,
// permissions kept. The folder has to exist. Every function throws Error.
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
// fsynced and takes the name of `path` only when complete. A folder that stood there is replaced,
// and is intact if anything fails, `fill` included; at every moment the name stands for the old
// folder or the new (but on file systems that cannot exchange two names it is missing for a moment;
// the next writer brings a folder back whose replacement was killed right then). Leftovers and
// links as for AtomicFile; folders above `path` are made. Throws Error, and what `fill` throws.
void write_folder(const std::filesystem::path& path,
                  const std::function<void(const std::filesystem::path& temporary)>& fill);

// For tests: called before every operation on a file, with its name: "read", "write", "fsync",
// "rename", or "exchange" (of two names, tried before "rename"). A returned errno other than 0 is
// taken as the operation's failure. An empty function removes it.
void set_file_fault(
    std::function<int(std::string_view operation, const std::filesystem::path& path)> fault);

}  // namespace rapt
