// How a file or folder takes the place of an older one: made under a temporary name beside it, then
// exchanged for it. For sources only.
//
// Temporary names are NAME.<process>-<number>.tmp, and their makers hold a lock (flock) on them,
// which the system drops when they die. So what nobody holds is a leftover and may be removed.
#pragma once

#include <filesystem>
#include <system_error>

#include "rapt/base/descriptor.h"

namespace rapt {

enum class Make { file, folder };

// The place that `path` names: links and dots resolved, its folder existing. Throws Error if
// something else than a file or folder (as `make` says) stands there.
std::filesystem::path resolve_target(const std::filesystem::path& path, Make make);

// A new file or folder beside its target, removed with the object unless it was put in place.
class Temporary {
 public:
  Temporary(const std::filesystem::path& target, Make make);  // throws Error
  ~Temporary();
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  const std::filesystem::path& path() const { return path_; }
  const Descriptor& file() const { return file_; }

  // Takes the target's place and brings its folder to the disk; what stood there is removed. If
  // that fails, it stands there again, and Error is thrown; only a file on a file system that
  // cannot exchange names may be the new one then.
  void put_in_place();

 private:
  void take_place();
  void move_aside();
  void go_back() noexcept;

  std::filesystem::path target_, path_;
  std::filesystem::path aside_;  // where the old folder went, on systems without exchange
  Descriptor file_;
  // How the place was taken: nothing stood there; a file was overwritten; the old one now stands
  // under path_; the old one now stands under aside_.
  enum class Way { empty, overwritten, exchanged, moved } way_ = Way::empty;
};

// Removes what writers that were killed left beside `target`. Where one was killed while the old
// folder was moved aside, the folder comes back.
void clear_leftovers(const std::filesystem::path& target);

// Removes a folder, if there is one, so that nobody finds half of it: it takes a temporary name
// first. Where that fails, the folder stands as it was, and the system's error is returned.
std::error_code remove_folder(const std::filesystem::path& folder);

}  // namespace rapt
