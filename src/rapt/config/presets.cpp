#include "rapt/config/presets.h"

#include <map>
#include <utility>

namespace rapt::config {
namespace {

// What differs from the built-in values, which are small's.
const std::map<std::string, std::vector<std::pair<const char*, const char*>>>& presets() {
  static const std::map<std::string, std::vector<std::pair<const char*, const char*>>> all = {
      {"tiny",
       {{"layers", "4"},
        {"d-model", "128"},
        {"nhead", "4"},
        {"dim-feedforward", "256"},
        {"dropout", "0.3"}}},
      {"small", {}},
      {"base",
       {{"layers", "6"},
        {"d-model", "512"},
        {"nhead", "8"},
        {"dim-feedforward", "2048"},
        {"schedule", "inverse_sqrt"},
        {"learning-rate", "0.0007"},
        {"warmup", "4000"}}},
      {"big",
       {{"layers", "6"},
        {"d-model", "1024"},
        {"nhead", "16"},
        {"dim-feedforward", "4096"},
        {"dropout", "0.3"},
        {"schedule", "inverse_sqrt"},
        {"learning-rate", "0.0005"},
        {"warmup", "4000"}}}};
  return all;
}

}  // namespace

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const auto& [name, values] : presets()) names.push_back(name);
  return names;
}

std::vector<Setting> preset_settings(const Settings& said) {
  const std::string name = value_of(said, "preset");
  const auto found = presets().find(name);
  if (found == presets().end()) return {};
  std::vector<Setting> settings;
  for (const auto& [key, value] : found->second)
    settings.push_back({key, value, Origin::preset, "preset " + name});
  const std::string schedule = value_of(said, "schedule");
  for (const Setting& setting : settings) {
    if (setting.name == "schedule" && !schedule.empty() && schedule != setting.value) {
      std::erase_if(settings, [](const Setting& s) { return s.name == "learning-rate"; });
      break;
    }
  }
  return settings;
}

}  // namespace rapt::config
