// rapt config: the settings of a training, merged, and whether a file's are sound.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/output.h"
#include "cli/program.h"
#include "cli/train_settings.h"
#include "rapt/base/check.h"

namespace rapt::cli {
namespace {

int dump(const TrainOptions& given, CLI::App& verb, const Globals& globals) {
  const config::Schema schema = train_schema(verb);
  const auto begun =
      resumed_run(given, [&](const std::string& line) { log(globals, Level::warning, line); });
  if (!begun && !given.resume.empty())
    fail(ErrorKind::model, "--resume: {} holds no run to go on with", run_folder(given));
  const auto stored =
      begun ? stored_settings(begun->state, schema) : std::vector<config::Setting>();
  print(to_yaml(schema, expect_sound(gather(verb, given, stored))));
  return 0;
}

// What is wrong with a file by itself.
std::vector<Error> problems_of(const std::string& file, const config::Schema& schema) {
  try {
    Said said = gather_file(file, schema);
    if (!said.problems.empty()) return std::move(said.problems);
    for (const Error& error : contradictions(options_of(said.settings)))
      said.problems.emplace_back(file + ": " + error.what());
    return std::move(said.problems);
  } catch (const Error& error) {
    return {error};
  }
}

int check(const std::vector<std::string>& files, const config::Schema& schema,
          const Globals& globals) {
  int code = 0;
  for (const std::string& file : files) {
    const std::vector<Error> problems = problems_of(file, schema);
    if (problems.empty()) print(file + ": ok\n");
    for (const Error& problem : problems)
      code = complain(globals, ErrorKind::config, problem.what());
  }
  return code;
}

}  // namespace

void add_config(CLI::App& app, Globals& globals, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "config", "The settings of a training: merged, with who said them; or checked");
  verb->require_subcommand(1);
  verb->footer(
      "Examples:\n  rapt config dump multi30k.yaml --dropout 0.2 > mine.yaml\n"
      "  rapt config check mine.yaml");

  auto options = std::make_shared<TrainOptions>();
  CLI::App* dump_verb = verb->add_subcommand(
      "dump",
      "Print what rapt train would do with these arguments, as YAML with the origin of each value");
  add_config_arguments(*dump_verb, *options);
  add_train_flags(*dump_verb, *options);
  dump_verb->callback([options, dump_verb, &globals, &action] {
    action = [options, dump_verb, &globals] { return dump(*options, *dump_verb, globals); };
  });

  // The flags of train are what a file may say.
  auto known = std::make_shared<CLI::App>();
  auto unused = std::make_shared<TrainOptions>();
  add_train_flags(*known, *unused);
  auto files = std::make_shared<std::vector<std::string>>();
  CLI::App* check_verb = verb->add_subcommand(
      "check", "Say that a file is sound, or name every error in it, with its line; exit code 3");
  check_verb->add_option("FILE", *files, "YAML files of settings")
      ->type_name("FILE.yaml")
      ->required();
  check_verb->callback([=, &app, &globals, &action] {
    action = [=, &app, &globals] { return check(*files, train_schema(*known, app), globals); };
  });
}

}  // namespace rapt::cli
