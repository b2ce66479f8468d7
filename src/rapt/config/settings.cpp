#include "rapt/config/settings.h"

#include <algorithm>
#include <filesystem>

#include "rapt/base/check.h"
#include "rapt/base/nearest.h"
#include "rapt/base/utf8.h"
#include "rapt/config/yaml.h"

namespace rapt::config {
namespace {

constexpr size_t kCommentColumn = 32;

std::string with_comment(std::string line, std::string_view comment) {
  line.resize(std::max(line.size() + 2, kCommentColumn), ' ');
  return line.append("# ").append(comment).append("\n");
}

std::string line_of(const Key& key, const Settings& settings) {
  const auto found = settings.find(key.name);
  if (found == settings.end()) return with_comment("# " + key.name + ":", "not set. " + key.help);
  const Setting& setting = found->second;
  const std::string value =
      key.is_path ? std::filesystem::absolute(setting.value).lexically_normal().string()
                  : setting.value;
  if (first_invalid_utf8(value))
    return with_comment("# " + key.name + ":",
                        "no UTF-8, which YAML cannot say; give it as a flag");
  return with_comment(key.name + ": " + yaml_scalar(value), setting.where);
}

}  // namespace

const Key* Schema::find(std::string_view name) const {
  const auto found =
      std::find_if(keys_.begin(), keys_.end(), [&](const Key& key) { return key.name == name; });
  return found == keys_.end() ? nullptr : &*found;
}

const Key& Schema::check_name(std::string_view name) const {
  if (const Key* key = find(name)) {
    if (key->is_for_one_call)
      fail(ErrorKind::failure, "{}: concerns one call, so it is a flag alone: --{}", name, name);
    return *key;
  }
  std::vector<std::string_view> known;
  for (const Key& key : keys_) {
    if (!key.is_for_one_call) known.push_back(key.name);
  }
  const std::string near = nearest(name, known);
  fail(ErrorKind::failure, "unknown key {}{}", yaml_scalar(name),
       near.empty() ? "" : "; did you mean " + near + "?");
}

void Schema::refuse(const Key& key, std::string_view got) const {
  fail(ErrorKind::failure, "{}: expected {}, got {}", key.name, key.expected, got);
}

void Schema::check(std::string_view name, const std::string& value) const {
  const Key& key = check_name(name);
  if (value.empty()) refuse(key, "nothing");
  if (!key.takes(value)) refuse(key, "\"" + value + "\"");
}

Settings Schema::built_in() const {
  Settings settings;
  for (const Key& key : keys_) {
    if (!key.built_in.empty())
      settings[key.name] = {key.name, key.built_in, Origin::built_in, "built in"};
  }
  return settings;
}

void lay_over(Settings& settings, const std::vector<Setting>& later) {
  for (const Setting& setting : later) settings[setting.name] = setting;
}

std::string value_of(const Settings& settings, std::string_view name) {
  const auto found = settings.find(name);
  return found == settings.end() ? "" : found->second.value;
}

std::string to_yaml(const Schema& schema, const Settings& settings) {
  std::string text;
  for (const Key& key : schema.keys()) {
    if (!key.is_for_one_call) text += line_of(key, settings);
  }
  return text;
}

}  // namespace rapt::config
