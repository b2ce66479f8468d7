#include "rapt/config/environment.h"

#include <algorithm>

#include "rapt/base/check.h"
#include "rapt/base/nearest.h"

namespace rapt::config {
namespace {

constexpr std::string_view kPrefix = "RAPT_";

// The key that `variable` stands for; null for none. Throws Error where it is misspelt.
const Key* key_of(std::string_view variable, const Schema& schema) {
  std::string near;
  for (const Key& key : schema.keys()) {
    if (key.is_for_one_call) continue;
    const std::string known = variable_of(key.name);
    if (known == variable) return &key;
    const size_t difference =
        std::max(known.size(), variable.size()) - std::min(known.size(), variable.size());
    if (difference <= 1 && edits(variable, known) == 1) near = known;
  }
  if (!near.empty())
    fail(ErrorKind::usage, "{}: unknown variable; did you mean {}?", variable, near);
  return nullptr;
}

}  // namespace

std::string variable_of(std::string_view key) {
  std::string name(kPrefix);
  for (const char c : key)
    name += c == '-' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return name;
}

std::vector<Setting> read_environment(std::span<const std::string> variables, const Schema& schema,
                                      std::vector<Error>& problems) {
  std::vector<Setting> settings;
  for (const std::string& variable : variables) {
    const size_t equals = variable.find('=');
    if (!variable.starts_with(kPrefix) || equals == std::string::npos) continue;
    const std::string name = variable.substr(0, equals), value = variable.substr(equals + 1);
    if (value.empty()) continue;
    try {
      const Key* key = key_of(name, schema);
      if (key == nullptr) continue;
      if (!key->takes(value))
        fail(ErrorKind::usage, "{}: expected {}, got \"{}\"", name, key->expected, value);
      settings.push_back({key->name, value, Origin::environment, name});
    } catch (const Error& error) {
      problems.push_back(error);
    }
  }
  return settings;
}

}  // namespace rapt::config
