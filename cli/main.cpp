// The program `rapt`: one verb a file; here the global flags, the order of things and the exit
// codes.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <new>

#include "cli/program.h"
#include "rapt/base/check.h"
#include "rapt/base/cpu.h"
#include "rapt/base/memory.h"
#include "rapt/base/profile.h"
#include "rapt/base/runtime.h"
#include "rapt/models/json.h"

namespace rapt::cli {
namespace {

void add_globals(CLI::App& app, Globals& globals) {
  app.add_option("--threads", globals.threads,
                 "Threads to compute with (default: the cores this process may use)")
      ->check(CLI::Range(1, 4096));
  app.add_option("--isa", globals.isa,
                 "Use no instructions beyond: scalar, sse4, avx2, avx512, avx512_bf16, amx");
  app.add_option("--max-memory", globals.max_memory,
                 "Stop with exit code 7 rather than take more memory, e.g. 4G");
  app.add_flag("--profile", globals.profile, "Print a table of time by operation on stderr");
  app.add_option("--seed", globals.seed, "Seed of all random numbers (default 0)");
  app.add_flag("--quiet", globals.quiet, "Only results and errors");
  app.add_flag("-v,--verbose", globals.verbose, "Say more on stderr");
  app.add_option("--progress", globals.progress, "auto, bar, plain or none")
      ->check(CLI::IsMember({"auto", "bar", "plain", "none"}));
  app.add_option("--color", globals.color, "auto, always or never (NO_COLOR is honoured)")
      ->check(CLI::IsMember({"auto", "always", "never"}));
}

// Flags and verbs of `app` and of what it falls through to.
std::vector<std::string> spellings(const CLI::App* app) {
  std::vector<std::string> all;
  for (; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) all.push_back("--" + name);
    }
    for (const CLI::App* verb : app->get_subcommands([](const CLI::App*) { return true; }))
      all.push_back(verb->get_name());
  }
  return all;
}

int usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* verb = &app;
  while (!verb->get_subcommands().empty()) verb = verb->get_subcommands().front();
  std::string line = error.what();
  const std::vector<std::string> extras = app.remaining(true);
  const bool no_verb = verb == &app && !extras.empty();
  if (no_verb || error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError)) {
    const auto flag = std::find_if(extras.begin(), extras.end(),
                                   [](const std::string& word) { return word.starts_with("-"); });
    const std::string wrong = flag != extras.end() ? *flag : extras.empty() ? "" : extras.front();
    line = fmt::format("{}: unknown {} {}", verb->get_name(),
                       wrong.starts_with("-") ? "flag"
                       : no_verb              ? "verb"
                                              : "argument",
                       wrong);
    const std::vector<std::string> known = spellings(verb);
    const std::vector<std::string_view> views(known.begin(), known.end());
    const std::string near = models::nearest(wrong, views);
    if (!near.empty()) line += fmt::format("; did you mean {}?", near);
  }
  fmt::print(stderr, "rapt: {}\nTry: {} --help\n", line,
             verb == &app ? "rapt" : "rapt " + verb->get_name());
  return static_cast<int>(ErrorKind::usage);
}

void print_profile() {
  fmt::print(stderr, "{:<28} {:>10} {:>10} {:>10} {:>10}\n", "operation", "calls", "ms", "GFLOP/s",
             "GB/s");
  for (const ProfileRow& row : profile_rows()) {
    const double per_second = row.seconds > 0 ? 1e-9 / row.seconds : 0;
    fmt::print(stderr, "{:<28} {:>10} {:>10.1f} {:>10.1f} {:>10.1f}\n", row.name, row.calls,
               row.seconds * 1e3, row.flops * per_second, row.bytes * per_second);
  }
}

int run(const Globals& globals, const Action& action) {
  if (!globals.isa.empty()) restrict_isa(parse_isa(globals.isa));
  if (!globals.max_memory.empty()) set_memory_limit(parse_size(globals.max_memory));
  set_profiling(globals.profile);
  Runtime runtime({.threads = globals.threads, .log = {}});
  const Runtime::Scope scope(runtime);
  const int code = action();
  if (globals.profile) print_profile();
  return code;
}

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed output is an error of writing
  Globals globals;
  Action action;
  CLI::App app("Rapt: Transformers in native C++. Results go to stdout, everything else to stderr.",
               "rapt");
  app.set_version_flag("--version", std::string("rapt ") + RAPT_VERSION);
  app.require_subcommand(1);
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);  // later wins
  app.fallthrough();
  app.failure_message(CLI::FailureMessage::simple);
  add_globals(app, globals);
  for (const auto add : {add_demo, add_train, add_translate, add_inspect, add_forward, add_bench})
    add(app, globals, action);
  app.footer(
      "Examples:\n  rapt demo --out demo\n  rapt train --source a.txt --target b.txt --out model\n "
      " rapt translate model < a.txt");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForVersion& version) {
    return app.exit(version);
  } catch (const CLI::ParseError& error) {
    return usage_error(app, error);
  }
  try {
    return run(globals, action);
  } catch (const Error& error) {
    fmt::print(stderr, "rapt: {}\n", error.what());
    return static_cast<int>(error.kind());
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "rapt: out of memory\n");
    return static_cast<int>(ErrorKind::memory);
  } catch (const std::exception& error) {
    fmt::print(stderr, "rapt: {}\n", error.what());
    return static_cast<int>(ErrorKind::failure);
  }
}

}  // namespace

void say(const Globals& globals, const std::string& line) {
  if (!globals.quiet) fmt::print(stderr, "{}\n", line);
}

void note(const Globals& globals, const std::string& line) {
  if (globals.verbose) say(globals, line);
}

int64_t parse_size(const std::string& text) {
  size_t end = 0;
  double value = -1;
  try {
    value = std::stod(text, &end);
  } catch (const std::exception&) {
    end = 0;
  }
  const std::string unit = text.substr(std::min(end, text.size()));
  const std::pair<const char*, double> units[] = {
      {"", 1}, {"K", 0x1p10}, {"M", 0x1p20}, {"G", 0x1p30}, {"T", 0x1p40}};
  for (const auto& [name, factor] : units) {
    if (end > 0 &&
        (unit == name || unit == std::string(name) + "iB" || unit == std::string(name) + "B") &&
        value > 0 && value * factor < 0x1p62) {
      return static_cast<int64_t>(value * factor);
    }
  }
  fail(ErrorKind::usage, "expected a size such as 500M or 4G, got \"{}\"", text);
}

}  // namespace rapt::cli

int main(int argc, char** argv) { return rapt::cli::main(argc, argv); }
