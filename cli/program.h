// What the subcommands share: global flags, and how a verb is added.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace rapt::cli {

struct Globals {
  int threads = 0;  // 0: all that this process may use
  std::string isa;
  std::string max_memory;
  bool profile = false;
  uint64_t seed = 0;
  bool quiet = false;
  bool verbose = false;
  std::string log_format = "text";  // text, json
  std::string progress = "auto";    // auto, bar, plain, none
  std::string color = "auto";       // auto, always, never
};

// A verb adds its flags to `app` and sets what runs after parsing: a function that returns the exit
// code.
using Action = std::function<int()>;
void add_demo(CLI::App& app, Globals& globals, Action& action);
void add_train(CLI::App& app, Globals& globals, Action& action);
void add_translate(CLI::App& app, Globals& globals, Action& action);
void add_config(CLI::App& app, Globals& globals, Action& action);
void add_plot(CLI::App& app, Globals& globals, Action& action);
void add_evaluate(CLI::App& app, Globals& globals, Action& action);
void add_tokenize(CLI::App& app, Globals& globals, Action& action);
void add_inspect(CLI::App& app, Globals& globals, Action& action);
void add_forward(CLI::App& app, Globals& globals, Action& action);
void add_convert(CLI::App& app, Globals& globals, Action& action);
void add_bench(CLI::App& app, Globals& globals, Action& action);

}  // namespace rapt::cli
