#include "tests/testing/testing.h"

#include <cstdlib>

namespace rapt::testing {

std::filesystem::path data_dir() {
  const char* folder = std::getenv("RAPT_DATA_DIR");
  return folder == nullptr ? std::filesystem::path() : std::filesystem::path(folder);
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "rapt-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw Error("cannot make a temporary folder " + name);
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace rapt::testing
