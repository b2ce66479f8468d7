// The program `rapt`: one verb a file; here the global flags, the order of things and the exit
// codes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <new>
#include <nlohmann/json.hpp>

#include "cli/flags.h"
#include "cli/output.h"
#include "cli/program.h"
#include "rapt/base/check.h"
#include "rapt/base/cpu.h"
#include "rapt/base/memory.h"
#include "rapt/base/profile.h"
#include "rapt/base/runtime.h"

namespace rapt::cli {
namespace {

constexpr const char* kLogFormatVariable = "RAPT_LOG_FORMAT";

// How to complain of a command line that cannot be parsed: what --log-format says in it, or the
// environment.
std::string log_format(const std::vector<std::string>& arguments) {
  const std::string flag = "--log-format";
  const char* variable = std::getenv(kLogFormatVariable);
  std::string format = variable == nullptr ? "" : variable;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == flag && i + 1 < arguments.size()) format = arguments[i + 1];
    if (arguments[i].starts_with(flag + "=")) format = arguments[i].substr(flag.size() + 1);
  }
  return format;
}

void add_globals(CLI::App& app, Globals& globals) {
  app.add_option("--threads", globals.threads,
                 "Threads to compute with (default: the cores this process may use)")
      ->type_name("N")
      ->check(whole(1, 4096))
      ->envname("RAPT_THREADS");
  app.add_option("--isa", globals.isa,
                 "Use no instructions beyond: scalar, sse4, avx2, avx512, avx512_bf16, amx")
      ->type_name("NAME")
      ->check(one_of({"scalar", "sse4", "avx2", "avx512", "avx512_bf16", "amx"}))
      ->envname("RAPT_ISA");
  app.add_option("--max-memory", globals.max_memory,
                 "Stop with exit code 7 rather than take more memory, e.g. 4G; train says before "
                 "it begins what fits")
      ->type_name("SIZE")
      ->check(size_text())
      ->envname("RAPT_MAX_MEMORY");
  app.add_flag("--profile", globals.profile, "Print a table of time by operation on stderr")
      ->check(yes_or_no())
      ->envname("RAPT_PROFILE");
  app.add_option("--seed", globals.seed, "Seed of all random numbers")
      ->type_name("N")
      ->check(whole(0))
      ->capture_default_str()
      ->envname("RAPT_SEED");
  app.add_flag("--quiet", globals.quiet, "Only results, warnings and errors")
      ->check(yes_or_no())
      ->envname("RAPT_QUIET");
  app.add_flag("-v,--verbose", globals.verbose, "Say more on stderr")
      ->check(yes_or_no())
      ->envname("RAPT_VERBOSE");
  app.add_option("--log-format", globals.log_format,
                 "What stderr gets: text, or json, an object a line")
      ->type_name("HOW")
      ->check(one_of({"text", "json"}))
      ->envname(kLogFormatVariable);
  app.add_option("--progress", globals.progress, "auto, bar, plain or none")
      ->type_name("HOW")
      ->check(one_of({"auto", "bar", "plain", "none"}))
      ->envname("RAPT_PROGRESS");
  app.add_option("--color", globals.color, "auto, always or never (NO_COLOR is honoured)")
      ->type_name("WHEN")
      ->check(one_of({"auto", "always", "never"}))
      ->envname("RAPT_COLOR");
}

// A number of operations or bytes in thousands of millions; a dash where none was counted.
std::string giga(double count) { return count > 0 ? fmt::format("{:.1f}", count * 1e-9) : "-"; }

void print_profile() {
  const auto line = [](const auto&... columns) {
    message(fmt::format("{:<22} {:>8} {:>10} {:>10} {:>10} {:>10} {:>10}\n", columns...));
  };
  line("operation", "calls", "ms", "GFLOP", "GB", "GFLOP/s", "GB/s");
  for (const ProfileRow& row : profile_rows()) {
    const double per_second = row.seconds > 0 ? 1 / row.seconds : 0;
    line(row.name, row.calls, fmt::format("{:.1f}", row.seconds * 1e3), giga(row.flops),
         giga(row.bytes), giga(row.flops * per_second), giga(row.bytes * per_second));
  }
}

void log_profile(const Globals& globals) {
  for (const ProfileRow& row : profile_rows()) {
    log(globals, Level::info, "profile of " + row.name,
        {{"operation", row.name},
         {"calls", row.calls},
         {"seconds", std::round(row.seconds * 1e6) / 1e6},
         {"flop", std::llround(row.flops)},
         {"bytes", std::llround(row.bytes)}});
  }
}

int run(const Globals& globals, const Action& action) {
  if (!globals.isa.empty()) restrict_isa(parse_isa(globals.isa));
  if (!globals.max_memory.empty()) set_memory_limit(parse_size(globals.max_memory));
  set_profiling(globals.profile);
  Runtime runtime({.threads = globals.threads,
                   .log = [&](std::string_view line) { log(globals, Level::warning, line); }});
  const Runtime::Scope scope(runtime);
  note(globals, fmt::format("rapt {} on {}, {} threads, {}", RAPT_VERSION, cpu_name(),
                            runtime.threads(), isa_name(active_isa())));
  const int code = action();
  if (globals.profile) is_json(globals) ? log_profile(globals) : print_profile();
  note(globals, fmt::format("peak memory of tensors: {:.1f} MiB",
                            static_cast<double>(memory_use().peak) / 0x1p20));
  return code;
}

// Runs `body`; what it throws becomes a line on stderr and the exit code.
int guarded(const Globals& globals, const std::function<int()>& body) {
  try {
    const int code = body();
    flush_results();
    return code;
  } catch (const Error& error) {
    return complain(globals, error.kind(), error.what());
  } catch (const std::bad_alloc&) {
    return complain(globals, ErrorKind::memory, "out of memory");
  } catch (const std::exception& error) {
    return complain(globals, ErrorKind::failure, error.what());
  }
}

int main(int argc, char** argv) {
  guard_standard_files();
  Globals globals;
  const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  globals.log_format = log_format(arguments);
  Action action;
  CLI::App app("Rapt: Transformers in native C++. Results go to stdout, everything else to stderr.",
               "rapt");
  app.set_version_flag("--version", std::string("rapt ") + RAPT_VERSION);
  app.require_subcommand(1);
  app.fallthrough();
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add_globals(app, globals);
  for (const auto add : {add_demo, add_train, add_config, add_plot, add_translate, add_evaluate,
                         add_tokenize, add_inspect, add_forward, add_convert, add_bench})
    add(app, globals, action);
  for (CLI::App* verb : app.get_subcommands([](CLI::App*) { return true; }))
    verb->footer("Flags of every verb, as --threads and --seed: rapt --help\n" +
                 verb->get_footer());
  app.footer(
      "Examples:\n  rapt demo --out demo\n  rapt train --source a.txt --target b.txt --out model\n "
      " rapt translate model < a.txt");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return guarded(globals, [&] {
      print(app.help());
      return 0;
    });
  } catch (const CLI::CallForVersion& version) {
    return guarded(globals, [&] {
      print(std::string(version.what()) + "\n");
      return 0;
    });
  } catch (const CLI::ParseError& error) {
    return complain(globals, ErrorKind::usage, describe(app, arguments, error),
                    fmt::format("rapt {}--help", path_of(chosen(app))));
  }
  return guarded(globals, [&] { return run(globals, action); });
}

}  // namespace
}  // namespace rapt::cli

int main(int argc, char** argv) { return rapt::cli::main(argc, argv); }
