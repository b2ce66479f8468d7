#include "rapt/base/cpu_quota.h"

#include <cmath>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace rapt {
namespace {

namespace fs = std::filesystem;

// Where a hierarchy of control groups is mounted, and which group is its top there.
struct Mount {
  fs::path top;
  fs::path folder;
};

std::vector<std::string> words_of(const std::string& line, char separator) {
  std::vector<std::string> words;
  std::istringstream stream(line);
  for (std::string word; std::getline(stream, word, separator);) words.push_back(word);
  return words;
}

bool has_word(const std::string& list, const std::string& word) {
  for (const std::string& candidate : words_of(list, ',')) {
    if (candidate == word) return true;
  }
  return false;
}

// A line of mountinfo: id parent device top folder options [tags] - type source options.
std::optional<Mount> find_mount(const fs::path& root, bool v2) {
  std::ifstream file(root / "proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> words = words_of(line, ' ');
    size_t dash = 6;
    while (dash < words.size() && words[dash] != "-") ++dash;
    if (dash + 3 >= words.size()) continue;
    const bool fits = v2 ? words[dash + 1] == "cgroup2"
                         : words[dash + 1] == "cgroup" && has_word(words[dash + 3], "cpu");
    if (fits) return Mount{words[3], root / fs::path(words[4]).relative_path()};
  }
  return std::nullopt;
}

// A line of /proc/self/cgroup: id:controllers:group, without controllers for v2.
std::optional<fs::path> find_group(const fs::path& root, bool v2) {
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    if (first == std::string::npos) continue;
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool fits = v2 ? controllers.empty() : has_word(controllers, "cpu");
    if (fits) return fs::path(line.substr(second + 1));
  }
  return std::nullopt;
}

double ratio(double quota, double period) {
  return quota > 0 && period > 0 ? quota / period : INFINITY;
}

double quota_of_folder(const fs::path& folder, bool v2) {
  double quota = 0, period = 0;
  if (v2) {  // "max 100000" fails to read as a number: no quota
    std::ifstream file(folder / "cpu.max");
    return file >> quota >> period ? ratio(quota, period) : INFINITY;
  }
  std::ifstream quota_file(folder / "cpu.cfs_quota_us");
  std::ifstream period_file(folder / "cpu.cfs_period_us");
  return quota_file >> quota && period_file >> period ? ratio(quota, period) : INFINITY;
}

double quota_of_hierarchy(const fs::path& root, bool v2) {
  const std::optional<Mount> mount = find_mount(root, v2);
  const std::optional<fs::path> group = find_group(root, v2);
  if (!mount || !group) return INFINITY;
  // In a container the group may be named from outside of what is mounted: then the mount's top is
  // all that can be seen.
  const fs::path below = group->lexically_relative(mount->top);
  fs::path folder = mount->folder;
  double least = quota_of_folder(folder, v2);
  for (const fs::path& step : below) {
    if (step == "..") break;
    folder /= step;
    least = std::min(least, quota_of_folder(folder, v2));
  }
  return least;
}

}  // namespace

double cpu_quota(const fs::path& root) {
  return std::min(quota_of_hierarchy(root, true), quota_of_hierarchy(root, false));
}

}  // namespace rapt
