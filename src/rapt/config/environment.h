// Settings from variables of the environment: RAPT_LABEL_SMOOTHING for label-smoothing.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rapt/base/error.h"
#include "rapt/config/settings.h"

namespace rapt::config {

// The variable that stands for a key.
std::string variable_of(std::string_view key);

// The settings of the variables, each given as "NAME=value". Empty ones count as unset, and keys
// for one call have none. Variables that are no key's may be anybody's and are left alone, unless
// one is a single edit away from a key's. That, and a value that the key does not take, is added to
// `problems` as (usage).
std::vector<Setting> read_environment(std::span<const std::string> variables, const Schema& schema,
                                      std::vector<Error>& problems);

}  // namespace rapt::config
