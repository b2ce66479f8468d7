// The program `rapt`: one verb a file; here the global flags, the order of things and the exit
// codes.
#include <fmt/format.h>

#include <new>

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
                 "Stop with exit code 7 rather than take more memory, e.g. 4G")
      ->type_name("SIZE")
      ->check(size_text())
      ->envname("RAPT_MAX_MEMORY");
  app.add_flag("--profile", globals.profile, "Print a table of time by operation on stderr");
  app.add_option("--seed", globals.seed, "Seed of all random numbers")
      ->type_name("N")
      ->check(whole(0))
      ->capture_default_str()
      ->envname("RAPT_SEED");
  app.add_flag("--quiet", globals.quiet, "Only results and errors");
  app.add_flag("-v,--verbose", globals.verbose, "Say more on stderr");
  app.add_option("--progress", globals.progress, "auto, bar, plain or none")
      ->type_name("HOW")
      ->check(one_of({"auto", "bar", "plain", "none"}))
      ->envname("RAPT_PROGRESS");
  app.add_option("--color", globals.color, "auto, always or never (NO_COLOR is honoured)")
      ->type_name("WHEN")
      ->check(one_of({"auto", "always", "never"}))
      ->envname("RAPT_COLOR");
}

void print_profile() {
  message(fmt::format("{:<28} {:>10} {:>10} {:>10} {:>10}\n", "operation", "calls", "ms", "GFLOP/s",
                      "GB/s"));
  for (const ProfileRow& row : profile_rows()) {
    const double per_second = row.seconds > 0 ? 1e-9 / row.seconds : 0;
    message(fmt::format("{:<28} {:>10} {:>10.1f} {:>10.1f} {:>10.1f}\n", row.name, row.calls,
                        row.seconds * 1e3, row.flops * per_second, row.bytes * per_second));
  }
}

int run(const Globals& globals, const Action& action) {
  if (!globals.isa.empty()) restrict_isa(parse_isa(globals.isa));
  if (!globals.max_memory.empty()) set_memory_limit(parse_size(globals.max_memory));
  set_profiling(globals.profile);
  Runtime runtime({.threads = globals.threads, .log = [&](std::string_view line) {
                     say(globals, fmt::format("rapt: {}", line));
                   }});
  const Runtime::Scope scope(runtime);
  note(globals, fmt::format("rapt {} on {}, {} threads, {}", RAPT_VERSION, cpu_name(),
                            runtime.threads(), isa_name(active_isa())));
  const int code = action();
  if (globals.profile) print_profile();
  note(globals, fmt::format("peak memory of tensors: {:.1f} MiB",
                            static_cast<double>(memory_use().peak) / 0x1p20));
  return code;
}

// Runs `body`; what it throws becomes a line on stderr and the exit code.
int guarded(const std::function<int()>& body) {
  try {
    const int code = body();
    flush_results();
    return code;
  } catch (const Error& error) {
    complain(error.what());
    return static_cast<int>(error.kind());
  } catch (const std::bad_alloc&) {
    complain("out of memory");
    return static_cast<int>(ErrorKind::memory);
  } catch (const std::exception& error) {
    complain(error.what());
    return static_cast<int>(ErrorKind::failure);
  }
}

int main(int argc, char** argv) {
  guard_standard_files();
  Globals globals;
  Action action;
  CLI::App app("Rapt: Transformers in native C++. Results go to stdout, everything else to stderr.",
               "rapt");
  app.set_version_flag("--version", std::string("rapt ") + RAPT_VERSION);
  app.require_subcommand(1);
  app.fallthrough();
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add_globals(app, globals);
  for (const auto add : {add_demo, add_train, add_translate, add_inspect, add_forward, add_bench})
    add(app, globals, action);
  app.footer(
      "Examples:\n  rapt demo --out demo\n  rapt train --source a.txt --target b.txt --out model\n "
      " rapt translate model < a.txt");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return guarded([&] {
      print(app.help());
      return 0;
    });
  } catch (const CLI::CallForVersion& version) {
    return guarded([&] {
      print(std::string(version.what()) + "\n");
      return 0;
    });
  } catch (const CLI::ParseError& error) {
    const CLI::App& verb = chosen(app);
    complain(describe(app, error));
    message(fmt::format("Try: rapt {}--help\n", &verb == &app ? "" : verb.get_name() + " "));
    return static_cast<int>(ErrorKind::usage);
  }
  return guarded([&] { return run(globals, action); });
}

}  // namespace
}  // namespace rapt::cli

int main(int argc, char** argv) { return rapt::cli::main(argc, argv); }
