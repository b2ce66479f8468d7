#include "rapt/base/check.h"
#include "rapt/base/descriptor.h"
#include "rapt/base/file.h"
#include "rapt/base/replace.h"

namespace rapt {
namespace {

namespace fs = std::filesystem;

// Everything below `folder`, and it.
void sync_tree(const fs::path& folder) {
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_symlink()) continue;
    if (entry.is_regular_file() || entry.is_directory()) sync_path(entry.path());
  }
  sync_path(folder);
}

void make_parents(const fs::path& path) {
  const fs::path plain = path.has_filename() ? path : path.parent_path();  // without a last slash
  std::error_code problem;
  if (plain.has_parent_path()) fs::create_directories(plain.parent_path(), problem);
  if (problem) fail_file("make", plain.parent_path(), problem.value());
}

}  // namespace

void write_folder(const fs::path& path, const std::function<void(const fs::path&)>& fill) {
  RAPT_CHECK(!path.empty(), "cannot write a folder without a name");
  make_parents(path);
  const fs::path target = resolve_target(path, Make::folder);
  clear_leftovers(target);
  Temporary temporary(target, Make::folder);
  fill(temporary.path());
  try {
    sync_tree(temporary.path());
  } catch (const fs::filesystem_error& error) {
    fail_file("read back", target, error.code().value());
  }
  temporary.put_in_place();
}

}  // namespace rapt
