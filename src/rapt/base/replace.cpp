#include "rapt/base/replace.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <vector>

#include "rapt/base/check.h"

namespace rapt {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTemporary = ".tmp", kAside = ".old.tmp";

int rename_with(const char* operation, const fs::path& from, const fs::path& to, unsigned flags) {
  if (const int code = file_fault(operation, to)) return code;
  return renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flags) == 0 ? 0 : errno;
}

// NAME.<process>-<number><ending>, NAME being the target's.
bool is_temporary_of(const fs::path& target, const std::string& name, std::string_view ending) {
  const std::string start = target.filename().string() + ".";
  if (name.size() <= start.size() + ending.size()) return false;
  if (!name.starts_with(start) || !name.ends_with(ending)) return false;
  const std::string_view middle =
      std::string_view(name).substr(start.size(), name.size() - start.size() - ending.size());
  return middle.find_first_not_of("0123456789-") == std::string_view::npos;
}

fs::path next_name(const fs::path& target, std::string_view ending) {
  static std::atomic<int> number{0};
  fs::path name = target;
  name += fmt::format(".{}-{}{}", getpid(), number++, ending);
  return name;
}

bool is_at(const Descriptor& file, const fs::path& path) {
  struct stat ours {
  }, theirs{};
  return fstat(file.number(), &ours) == 0 && lstat(path.c_str(), &theirs) == 0 &&
         ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

// A lock that is not to be had (somebody else's, or none on this file system) is reported as false.
bool lock(const Descriptor& file) { return flock(file.number(), LOCK_EX | LOCK_NB) == 0; }

Descriptor make_at(const fs::path& path, Make make) {
  if (make == Make::file) return open_file(path, O_RDWR | O_CREAT | O_EXCL, 0666);
  if (mkdir(path.c_str(), 0777) != 0) return {};
  Descriptor folder = open_file(path, O_RDONLY | O_DIRECTORY);
  if (!folder.is_open()) {
    const int code = errno;
    rmdir(path.c_str());
    errno = code;
  }
  return folder;
}

}  // namespace

fs::path resolve_target(const fs::path& path, Make make) {
  std::error_code problem;
  const fs::file_status status = fs::status(path, problem);
  if (fs::exists(status)) {
    const bool fits = make == Make::file ? fs::is_regular_file(status) : fs::is_directory(status);
    if (!fits) {
      fail(ErrorKind::failure, "cannot write {}: expected a {} or nothing there, got {}",
           path.string(), make == Make::file ? "file" : "folder",
           fs::is_directory(status) ? "a folder" : "a file of another kind");
    }
    fs::path whole = fs::canonical(path, problem);
    if (problem) fail_file("write", path, problem.value());
    return whole;
  }
  const fs::path plain = path.has_filename() ? path : path.parent_path();  // without a last slash
  const fs::path parent = plain.has_parent_path() ? plain.parent_path() : fs::path(".");
  const fs::path folder = fs::canonical(parent, problem);
  if (problem) fail_file("write", path, problem.value());
  return folder / plain.filename();
}

Temporary::Temporary(const fs::path& target, Make make) : target_(target) {
  for (;;) {
    path_ = next_name(target, kTemporary);
    file_ = make_at(path_, make);
    if (!file_.is_open() && errno == EEXIST) continue;
    if (!file_.is_open()) fail_file("write", path_, errno);
    lock(file_);
    if (is_at(file_, path_)) return;  // else it was taken for a leftover before it was locked
  }
}

Temporary::~Temporary() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

void Temporary::put_in_place() {
  take_place();
  try {
    sync_path(target_.parent_path());
  } catch (...) {
    go_back();
    throw;
  }
  // What is left of the old one is under path_, to be removed.
  if (way_ == Way::empty || way_ == Way::overwritten) path_.clear();
  if (way_ == Way::moved) path_ = aside_;
}

void Temporary::take_place() {
  for (;;) {
    int code = rename_with("exchange", path_, target_, RENAME_EXCHANGE);
    way_ = Way::exchanged;
    if (code == 0) return;
    const bool nothing_there = code == ENOENT;
    const bool unknown = code == EINVAL || code == ENOSYS || code == ENOTSUP;
    if (!nothing_there && !unknown) fail_file("put in place", target_, code);
    std::error_code problem;
    if (fs::is_directory(target_, problem)) return move_aside();
    way_ = fs::exists(target_, problem) ? Way::overwritten : Way::empty;
    code = rename_with("rename", path_, target_, 0);
    if (code == 0) return;
    const bool was_made_meanwhile = code == EEXIST || code == ENOTEMPTY;
    if (!was_made_meanwhile) fail_file("put in place", target_, code);
  }
}

// Without exchange, a folder cannot take the place of another at once.
void Temporary::move_aside() {
  way_ = Way::moved;
  aside_ = next_name(target_, kAside);
  int code = rename_with("rename", target_, aside_, 0);
  if (code != 0) fail_file("put in place", target_, code);
  code = rename_with("rename", path_, target_, 0);
  if (code == 0) return;
  rename(aside_.c_str(), target_.c_str());
  fail_file("put in place", target_, code);
}

// Undoes take_place().
void Temporary::go_back() noexcept {
  switch (way_) {
    case Way::empty:
      rename(target_.c_str(), path_.c_str());
      break;
    case Way::overwritten:
      path_.clear();
      break;
    case Way::exchanged:
      renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, target_.c_str(), RENAME_EXCHANGE);
      break;
    case Way::moved:
      rename(target_.c_str(), path_.c_str());
      rename(aside_.c_str(), target_.c_str());
      break;
  }
}

void clear_leftovers(const fs::path& target) {
  std::error_code problem;
  std::vector<fs::path> found;
  fs::directory_iterator entry(target.parent_path(), problem), end;
  for (; !problem && entry != end; entry.increment(problem)) {
    const std::string name = entry->path().filename().string();
    if (is_temporary_of(target, name, kAside) || is_temporary_of(target, name, kTemporary)) {
      found.push_back(entry->path());
    }
  }
  for (const fs::path& path : found) {
    const Descriptor file = open_file(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if (!file.is_open() || !lock(file)) continue;
    if (path.string().ends_with(kAside) && !fs::exists(target, problem)) {
      rename(path.c_str(), target.c_str());
    } else {
      fs::remove_all(path, problem);
    }
  }
}

std::error_code remove_folder(const fs::path& folder) {
  const fs::path aside = next_name(folder, kTemporary);
  std::error_code problem;
  fs::rename(folder, aside, problem);
  if (problem == std::errc::no_such_file_or_directory) return {};
  if (problem) return problem;
  fs::remove_all(aside, problem);  // what cannot be removed is a leftover
  return {};
}

}  // namespace rapt
