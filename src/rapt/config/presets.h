// Presets: sizes of models, and rates that suit them, by name.
#pragma once

#include <string>
#include <vector>

#include "rapt/config/settings.h"

namespace rapt::config {

std::vector<std::string> preset_names();

// What the preset that `said` names brings, nothing where it names none. A preset's rate belongs to
// its schedule: where `said` has another, the rate is left out.
std::vector<Setting> preset_settings(const Settings& said);

}  // namespace rapt::config
