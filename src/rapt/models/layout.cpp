#include "rapt/models/layout.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "rapt/base/check.h"
#include "rapt/models/layouts/layouts.h"

namespace rapt::models {
namespace {

// The number that stands for "{i}" where `name` matches `pattern` ("" for a pattern without one).
std::optional<std::string> match(std::string_view pattern, std::string_view name) {
  const size_t hole = pattern.find("{i}");
  if (hole == std::string_view::npos)
    return pattern == name ? std::optional<std::string>("") : std::nullopt;
  const std::string_view before = pattern.substr(0, hole), after = pattern.substr(hole + 3);
  if (name.size() <= before.size() + after.size() || !name.starts_with(before) ||
      !name.ends_with(after))
    return std::nullopt;
  const std::string_view number =
      name.substr(before.size(), name.size() - before.size() - after.size());
  if (!std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return std::nullopt;
  return std::string(number);
}

std::string fill(std::string_view pattern, const std::string& number) {
  const size_t hole = pattern.find("{i}");
  if (hole == std::string_view::npos) return std::string(pattern);
  return std::string(pattern.substr(0, hole)) + number + std::string(pattern.substr(hole + 3));
}

}  // namespace

const Layout& layout(std::string_view name) {
  std::string names;
  for (const Layout* candidate : {&layouts::rapt(), &layouts::hand_built(), &layouts::torch()}) {
    if (candidate->name == name) return *candidate;
    names += (names.empty() ? "" : ", ") + std::string(candidate->name);
  }
  fail(ErrorKind::failure, "layout: expected one of {}, got \"{}\"", names, name);
}

std::vector<LayoutEntry> entries(const Layout& layout, std::span<const std::string> canonical) {
  std::vector<LayoutEntry> all;
  std::unordered_set<std::string> done;
  const std::unordered_set<std::string> present(canonical.begin(), canonical.end());
  for (const std::string& name : canonical) {
    if (done.contains(name)) continue;
    if (layout.rules.empty()) {  // the canonical layout
      all.push_back({name, {name}});
      continue;
    }
    bool found = false;
    for (const LayoutRule& rule : layout.rules) {
      const std::optional<std::string> number = match(rule.canonical.front(), name);
      if (!number) continue;
      LayoutEntry entry{fill(rule.file, *number), {}};
      for (const std::string_view part : rule.canonical) {
        entry.canonical.push_back(fill(part, *number));
        done.insert(entry.canonical.back());
        RAPT_CHECK(present.contains(entry.canonical.back()),
                   "layout {}: the model has no {} for {}", layout.name, entry.canonical.back(),
                   entry.file);
      }
      all.push_back(std::move(entry));
      found = true;
      break;
    }
    RAPT_CHECK(found, "layout {}: there is no name for {}", layout.name, name);
  }
  return all;
}

}  // namespace rapt::models
