#include "cli/train_settings.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/flags.h"
#include "rapt/base/check.h"
#include "rapt/config/environment.h"
#include "rapt/config/presets.h"
#include "rapt/config/yaml.h"

namespace rapt::cli {
namespace {

namespace fs = std::filesystem;
using config::Origin;
using config::Setting;
using nlohmann::ordered_json;

constexpr const char* kSeed = "seed";

const std::set<std::string> kForOneCall = {"out", "resume", "restart", "set", "help"};
const std::set<std::string> kPaths = {"source",          "target",       "pairs",
                                      "valid-source",    "valid-target", "source-tokenizer",
                                      "target-tokenizer"};

// The first check of a flag's value, or null.
CLI::Validator* validator_of(CLI::Option& option) {
  try {
    return option.get_validator(0);
  } catch (const CLI::OptionNotFound&) {
    return nullptr;
  }
}

// What a check expects, from what it says of a value that none takes.
std::string expectation(const CLI::Validator& check) {
  const std::string begin = "expected ", end = ", got ";
  std::string nothing;
  const std::string message = check(nothing);
  RAPT_ASSERT(message.starts_with(begin) && message.rfind(end) != std::string::npos);
  return message.substr(begin.size(), message.rfind(end) - begin.size());
}

config::Key key_of(CLI::Option& option) {
  config::Key key;
  key.name = option.get_lnames().front();
  key.help = option.get_description();
  key.built_in = option.get_default_str();
  key.is_path = kPaths.contains(key.name);
  key.is_for_one_call = kForOneCall.contains(key.name);
  key.expected = key.is_path ? "a file" : "text";
  key.takes = [](const std::string&) { return true; };
  if (option.get_items_expected_max() == 0) {
    key.expected = "true or false";
    key.takes = [](const std::string& text) { return text == "true" || text == "false"; };
    if (key.built_in.empty()) key.built_in = "false";
  } else if (const CLI::Validator* check = validator_of(option)) {
    key.expected = expectation(*check);
    key.takes = [check = *check](std::string text) { return check(text).empty(); };
  }
  return key;
}

CLI::App& program_of(CLI::App& verb) {
  return verb.get_parent() == nullptr ? verb : program_of(*verb.get_parent());
}

// "key=value" of --set.
Setting assigned(const std::string& text, const config::Schema& schema) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    fail(ErrorKind::usage, "--set: expected key=value such as dropout=0.2, got {}", text);
  const std::string name = text.substr(0, equals), value = text.substr(equals + 1);
  with_error_kind(ErrorKind::usage, "--set", [&] { schema.check(name, value); });
  return {name, value, Origin::flag, "--set"};
}

// The flags of a verb or the program, those of --set among them, in the order in which they stand.
std::vector<Setting> flags_of(const CLI::App& app, const config::Schema& schema,
                              std::vector<Error>& problems) {
  std::vector<Setting> settings;
  std::map<const CLI::Option*, size_t> seen;
  for (const CLI::Option* option : app.parse_order()) {
    const std::string& value = option->results().at(seen[option]++);
    if (option->get_lnames().empty()) continue;
    const std::string& name = option->get_lnames().front();
    const config::Key* key = schema.find(name);
    if (name == "set") {
      try {
        settings.push_back(assigned(value, schema));
      } catch (const Error& error) {
        problems.push_back(error);
      }
    } else if (key != nullptr && !key->is_for_one_call && !value.empty()) {
      settings.push_back({name, value, Origin::flag, "--" + name});
    }
  }
  return settings;
}

std::vector<std::string> environment() {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) variables.push_back(*variable);
  return variables;
}

// What is built in and the preset's below what was said.
config::Settings whole(const config::Schema& schema, const config::Settings& said) {
  config::Settings settings = schema.built_in();
  lay_over(settings, preset_settings(said));
  for (const auto& [name, setting] : said) settings[name] = setting;
  return settings;
}

}  // namespace

config::Schema train_schema(CLI::App& verb) { return train_schema(verb, program_of(verb)); }

config::Schema train_schema(CLI::App& verb, CLI::App& program) {
  std::vector<config::Key> keys;
  for (CLI::Option* option : verb.get_options()) {
    if (!option->get_lnames().empty()) keys.push_back(key_of(*option));
  }
  keys.push_back(key_of(*program.get_option("--seed")));
  return config::Schema(std::move(keys));
}

std::string run_folder(const TrainOptions& given) {
  const bool is_named = !given.resume.empty() && !given.resume.front().empty();
  if (is_named && !given.out.empty() && given.out != given.resume.front())
    fail(ErrorKind::usage, "--resume: expected the folder of --out, {}, or none, got {}", given.out,
         given.resume.front());
  return is_named ? given.resume.front() : given.out;
}

std::optional<train::OpenRun> resumed_run(const TrainOptions& given, const Warn& warn) {
  if (given.resume.empty()) return std::nullopt;
  const std::string folder = run_folder(given);
  if (folder.empty()) fail(ErrorKind::usage, "--resume: expected DIR after it, or --out DIR");
  return train::open_run(folder, warn);
}

namespace {

// What stands where a configuration may is often the text.
std::vector<Setting> read_configuration(const std::string& file, const config::Schema& schema,
                                        std::vector<Error>& problems) {
  try {
    return config::read_yaml(file, schema, problems);
  } catch (const Error& error) {
    const std::string ending = std::filesystem::path(file).extension();
    if (error.kind() != ErrorKind::config || ending == ".yaml" || ending == ".yml") throw;
    throw Error(
        fmt::format("{}; text to learn from is given by --source and --target", error.what()),
        ErrorKind::config);
  }
}

}  // namespace

Said gather(CLI::App& verb, const TrainOptions& given, const std::vector<Setting>& stored) {
  const config::Schema schema = train_schema(verb);
  config::Settings said;
  std::vector<Error> problems;
  for (const Setting& setting : stored) {
    const bool is_said_anew = setting.origin == Origin::file && !given.configs.empty();
    if (!is_said_anew) said[setting.name] = setting;
  }
  for (const std::string& file : given.configs)
    lay_over(said, read_configuration(file, schema, problems));
  lay_over(said, config::read_environment(environment(), schema, problems));
  lay_over(said, flags_of(program_of(verb), schema, problems));
  lay_over(said, flags_of(verb, schema, problems));
  return {whole(schema, said), std::move(problems)};
}

config::Settings expect_sound(Said said) {
  if (said.problems.empty()) return std::move(said.settings);
  const Error& first = said.problems.front();
  const size_t others = said.problems.size() - 1;
  if (others == 0) throw first;
  throw Error(fmt::format("{}; and {} more: rapt config check names all those of a file",
                          first.what(), others),
              first.kind());
}

Said gather_file(const std::string& file, const config::Schema& schema) {
  config::Settings said;
  std::vector<Error> problems;
  lay_over(said, config::read_yaml(file, schema, problems));
  return {whole(schema, said), std::move(problems)};
}

std::string arguments_of(const config::Settings& settings, const config::Schema& schema) {
  ordered_json arguments = ordered_json::object(), where = ordered_json::object();
  ordered_json files = ordered_json::array();
  for (const config::Key& key : schema.keys()) {
    const auto found = settings.find(key.name);
    if (found == settings.end() || key.name == kSeed) continue;
    const Setting& setting = found->second;
    if (setting.origin == Origin::built_in || setting.origin == Origin::preset) continue;
    arguments["--" + key.name] = key.is_path ? fs::absolute(setting.value).string() : setting.value;
    where[key.name] = setting.where;
    if (setting.origin == Origin::file) files.push_back(key.name);
  }
  arguments["where"] = where;
  arguments["files"] = files;
  return arguments.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::vector<Setting> stored_settings(const train::RunState& state, const config::Schema& schema) {
  const auto arguments = ordered_json::parse(state.arguments, nullptr, false);
  if (!arguments.is_object()) return {};
  const ordered_json none = ordered_json::object();
  const auto& where = arguments.contains("where") ? arguments["where"] : none;
  const auto& files = arguments.contains("files") ? arguments["files"] : none;
  std::vector<Setting> settings;
  const auto add = [&](const std::string& name, const std::string& value) {
    with_error_kind(ErrorKind::model, "the run's own settings cannot be read back",
                    [&] { schema.check(name, value); });
    const bool is_files = std::find(files.begin(), files.end(), name) != files.end();
    const bool is_known = where.contains(name) && where[name].is_string();
    settings.push_back({name, value, is_files ? Origin::file : Origin::run,
                        is_known ? where[name].get<std::string>() : "the run"});
  };
  for (const auto& [name, value] : arguments.items()) {
    if (name.starts_with("--") && value.is_string()) add(name.substr(2), value.get<std::string>());
  }
  if (const auto seed = state.settings.find(kSeed); seed != state.settings.end())
    add(kSeed, seed->second);
  return settings;
}

TrainOptions options_of(const config::Settings& settings) {
  TrainOptions options;
  CLI::App app;
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add_train_flags(app, options);
  std::vector<std::string> arguments;
  for (const auto& [name, setting] : settings) {
    if (setting.origin != Origin::built_in && name != kSeed)
      arguments.push_back("--" + name + "=" + setting.value);
  }
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    fail(ErrorKind::failure, "internal error: settings that were checked are refused: {}",
         error.what());
  }
  options.seed = std::stoull(value_of(settings, kSeed));
  return options;
}

}  // namespace rapt::cli
