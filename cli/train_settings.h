// The settings of rapt train, from everyone who may say them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/train_options.h"
#include "rapt/config/settings.h"

namespace rapt::cli {

// What a verb with the flags of train takes from CONFIG.yaml and from the environment, too: its
// long flags, and --seed of the program.
config::Schema train_schema(CLI::App& verb);
config::Schema train_schema(CLI::App& verb, CLI::App& program);

// The folder of the run, by --out or --resume. Throws Error (usage) where they differ.
std::string run_folder(const TrainOptions& given);

// The run that --resume goes on with; nothing without the flag, and where nothing was saved yet.
using Warn = std::function<void(const std::string& line)>;
std::optional<train::OpenRun> resumed_run(const TrainOptions& given, const Warn& warn);

// What was said, and what is wrong with it: (config) from files, (usage) from the environment and
// --set.
struct Said {
  config::Settings settings;
  std::vector<Error> problems;
};

// Everything that was said, from what is built in to the flags of `verb`. `stored` are the settings
// of a run that goes on. Throws Error (config) where a file is no configuration at all.
Said gather(CLI::App& verb, const TrainOptions& given, const std::vector<config::Setting>& stored);

// The settings, if nothing is wrong with them; throws the first Error otherwise.
config::Settings expect_sound(Said said);

// What a file says by itself, over what is built in and its preset.
Said gather_file(const std::string& file, const config::Schema& schema);

// What a run stored as its arguments, for `schema`. Throws Error (model) where it cannot be read.
std::vector<config::Setting> stored_settings(const train::RunState& state,
                                             const config::Schema& schema);

// What a run stores: a JSON object of "--name" -> value without what is built in or the preset's,
// paths absolute.
std::string arguments_of(const config::Settings& settings, const config::Schema& schema);

// The options that the settings say.
TrainOptions options_of(const config::Settings& settings);

}  // namespace rapt::cli
