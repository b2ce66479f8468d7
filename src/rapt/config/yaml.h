// Configuration files: YAML of one level, `key: value`, read by yaml-cpp and trusted in nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "rapt/base/error.h"
#include "rapt/config/settings.h"

namespace rapt::config {

inline constexpr int64_t kMostYamlBytes = 1 << 18;

// The settings of a file, in its order; a path that is not absolute goes by the file's folder. What
// is wrong with a key or value is added to `problems`, (config) each, with its line, and the rest
// is read. Throws Error (config) where the file cannot be read, is over kMostYamlBytes, or is no
// YAML mapping; anchors, aliases, tags, directives and a second document are refused.
std::vector<Setting> read_yaml(const std::filesystem::path& file, const Schema& schema,
                               std::vector<Error>& problems);

// A text as YAML spells it: as it stands where it means itself, else in quotes.
std::string yaml_scalar(std::string_view text);

}  // namespace rapt::config
