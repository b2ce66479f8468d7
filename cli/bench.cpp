// rapt bench: what a case takes here and now, or what the machine can do at most.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "rapt/base/check.h"
#include "rapt/base/cpu.h"
#include "rapt/base/nearest.h"
#include "rapt/measure/decoding.h"
#include "rapt/measure/machine.h"
#include "rapt/measure/sdpa.h"
#include "rapt/measure/training.h"

namespace rapt::cli {
namespace {

using measure::MachineReport;

struct Options {
  std::string name;
  measure::TrainingOptions training;
  measure::AttentionCases attention;
  measure::DecodingOptions decoding;
  std::string init;
  double dropout = -1;
  std::string dtype = "f32";
  bool json = false;  // the other cases always print JSON lines
};

// The number nearest to `value` with so many decimals, which JSON then shows with no more.
double rounded(double value, int decimals) {
  const double unit = std::pow(10.0, decimals);
  return std::round(value * unit) / unit;
}

// Operations or bytes a second in thousands of millions.
double giga(double per_second) { return rounded(per_second * 1e-9, 2); }

void print_machine_json(const std::vector<MachineReport>& reports) {
  nlohmann::ordered_json j;
  j["case"] = "machine";
  j["cpu"] = cpu_name();
  j["isa"] = isa_name(active_isa());
  for (const MachineReport& r : reports) {
    nlohmann::ordered_json one;
    one["threads"] = r.threads;
    for (const auto& [type, peak] : r.peaks) one[type + "_gops"] = giga(peak);
    one["read_gb_per_s"] = giga(r.read);
    one["copy_gb_per_s"] = giga(r.copy);
    one["update_gb_per_s"] = giga(r.update);
    one["touch_4k_gb_per_s"] = giga(r.touch_small);
    if (r.touch_huge) one["touch_huge_gb_per_s"] = giga(*r.touch_huge);
    j["measured"].push_back(one);
  }
  fmt::print("{}\n", j.dump());
}

// A row a figure, a column a number of threads.
void print_machine_table(const std::vector<MachineReport>& reports) {
  const auto row = [&](const std::string& name, const char* unit, const auto& value) {
    fmt::print("{:<40}{:<8}", name, unit);
    for (const MachineReport& r : reports) fmt::print("{:>12.1f}", value(r) * 1e-9);
    fmt::print("\n");
  };
  fmt::print("{}, {}\n\n{:<48}", cpu_name(), isa_name(active_isa()), "threads");
  for (const MachineReport& r : reports) fmt::print("{:>12}", r.threads);
  fmt::print("\n");
  for (size_t i = 0; i < reports.front().peaks.size(); ++i) {
    row("multiply-add " + reports.front().peaks[i].first, "Gop/s",
        [i](const MachineReport& r) { return r.peaks[i].second; });
  }
  row("memory read", "GB/s", [](const MachineReport& r) { return r.read; });
  row("memory copy, bytes in and out", "GB/s", [](const MachineReport& r) { return r.copy; });
  row("memory update, bytes in and out", "GB/s", [](const MachineReport& r) { return r.update; });
  row("first touch of 4 KiB pages", "GB/s", [](const MachineReport& r) { return r.touch_small; });
  if (std::all_of(reports.begin(), reports.end(), [](const auto& r) { return !!r.touch_huge; }))
    row("first touch of huge pages", "GB/s", [](const MachineReport& r) { return *r.touch_huge; });
}

int bench_machine(bool json) {
  const std::vector<MachineReport> reports = measure::measure_machine();
  json ? print_machine_json(reports) : print_machine_table(reports);
  return 0;
}

int bench_training(const Options& options) {
  const measure::TrainingResult r = measure::run_training(options.name, options.training);
  nlohmann::ordered_json j;
  j["case"] = r.name;
  j["dtype"] = options.dtype;
  j["threads"] = r.threads;
  j["step_ms"] = rounded(r.step_ms, 2);
  j["min"] = rounded(r.min_ms, 2);
  j["max"] = rounded(r.max_ms, 2);
  j[r.unit + "_per_s"] = rounded(r.items_per_s, 1);
  j["flops_per_s"] = std::llround(r.flops_per_s);
  j["fraction_of_peak"] = rounded(r.fraction_of_peak, 4);
  j["rss_mib"] = r.rss_mib;
  for (const double loss : r.loss) j["loss"].push_back(rounded(loss, 6));
  fmt::print("{}\n", j.dump());
  return 0;
}

// A line a setting, as each is measured.
int bench_attention(const Options& options) {
  measure::time_attention(options.attention, [&](const measure::AttentionTiming& t) {
    nlohmann::ordered_json j;
    j["case"] = "sdpa";
    j["T"] = t.T;
    j["dtype"] = options.dtype;
    j["mask"] = t.mask;
    j["both"] = t.both;
    j["threads"] = t.threads;
    j["ms"] = rounded(t.step_ms, 3);
    j["step_ms"] = rounded(t.step_ms, 3);
    j["min"] = rounded(t.min_ms, 3);
    j["max"] = rounded(t.max_ms, 3);
    j["tokens_per_s"] = rounded(t.tokens_per_s, 1);
    j["flops_per_s"] = std::llround(t.flops_per_s);
    j["fraction_of_peak"] = rounded(t.fraction_of_peak, 4);
    j["rss_mib"] = t.rss_mib;
    fmt::print("{}\n", j.dump());
    std::fflush(stdout);
  });
  return 0;
}

int bench_decoding(const Options& options) {
  const measure::DecodingResult r = measure::run_decoding(options.decoding);
  nlohmann::ordered_json j;
  j["case"] = options.name;
  j["dtype"] = options.dtype;
  j["beam"] = options.decoding.beam;
  j["batch"] = options.decoding.batch;
  j["threads"] = r.threads;
  j["step_ms"] = rounded(r.run_ms, 2);
  j["min"] = rounded(r.min_ms, 2);
  j["max"] = rounded(r.max_ms, 2);
  j["tokens_per_s"] = rounded(r.tokens_per_s, 1);
  j["range"] = {rounded(r.least, 1), rounded(r.most, 1)};
  j["first_token_ms"] = rounded(r.first_token_ms, 2);
  j["flops_per_s"] = std::llround(r.flops_per_s);
  j["fraction_of_peak"] = rounded(r.fraction_of_peak, 4);
  j["rss_mib"] = r.rss_mib;
  fmt::print("{}\n", j.dump());
  return 0;
}

std::vector<std::string> cases() {
  std::vector<std::string> all = {"machine", "sdpa", "translate"};
  for (const std::string& name : measure::training_cases()) all.push_back(name);
  return all;
}

void check_case(const std::string& name) {
  const std::vector<std::string> all = cases();
  if (std::find(all.begin(), all.end(), name) != all.end()) return;
  const std::string near = nearest(name, std::vector<std::string_view>(all.begin(), all.end()));
  fail(ErrorKind::usage, "bench: expected one of {}, got \"{}\"{}", fmt::join(all, ", "), name,
       near.empty() ? "" : fmt::format("; did you mean {}?", near));
}

// What a case would leave out of account is no flag of it.
void refuse_flags(const CLI::App& verb, const std::string& name,
                  std::initializer_list<const char*> flags) {
  for (const char* flag : flags) {
    const std::string_view f = flag;
    if (verb.count(flag) > 0)
      fail(ErrorKind::usage, "bench {}: {} belongs to {} (leave it out)", name, flag,
           f == "--lengths"                  ? "sdpa"
           : f == "--beam" || f == "--batch" ? "translate"
                                             : "a training case");
  }
}

int bench(Options options, const CLI::App& verb, const Globals& globals) {
  check_case(options.name);
  const bool narrow = options.dtype == "bf16";
  if (options.name == "translate") {
    refuse_flags(verb, options.name, {"--dropout", "--init", "--lengths", "--recompute"});
    if (narrow) options.decoding.type = measure::DecodingType::bf16;
    if (options.dtype == "int8") options.decoding.type = measure::DecodingType::int8;
    if (verb.count("--steps") > 0) options.decoding.runs = options.training.steps;
    options.decoding.seed = globals.seed;
    return bench_decoding(options);
  }
  if (options.name == "machine") {
    refuse_flags(verb, options.name,
                 {"--dtype", "--steps", "--dropout", "--init", "--lengths", "--beam", "--batch",
                  "--recompute"});
    return bench_machine(options.json);
  }
  if (options.dtype == "int8")
    fail(ErrorKind::usage, "bench {}: expected --dtype f32 or bf16, got int8", options.name);
  if (options.name == "sdpa") {
    refuse_flags(verb, options.name, {"--dropout", "--init", "--beam", "--batch", "--recompute"});
    if (verb.count("--steps") > 0) options.attention.steps = options.training.steps;
    options.attention.seed = globals.seed;
    if (narrow) options.attention.type = DType::bf16;
    return bench_attention(options);
  }
  refuse_flags(verb, options.name, {"--lengths", "--beam", "--batch"});
  options.training.init = options.init;
  options.training.seed = globals.seed;
  if (narrow) options.training.compute_type = DType::bf16;
  if (options.dropout >= 0) options.training.dropout = options.dropout;
  return bench_training(options);
}

}  // namespace

void add_bench(CLI::App& app, Globals& globals, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand(
      "bench",
      "Measure a training case (one JSON line on stdout), decoding (translate), attention alone "
      "(sdpa: a line a setting) or what the machine can do");
  verb->add_option("case", options->name, fmt::format("One of {}", fmt::join(cases(), ", ")))
      ->required();
  verb->add_option(
          "--dtype", options->dtype,
          "What is computed in: f32, or bf16, with parameters of f32; translate also in int8")
      ->check(CLI::IsMember({"f32", "bf16", "int8"}))
      ->capture_default_str();
  verb->add_option("--steps", options->training.steps,
                   "Timed steps, after three that are not; of sdpa 5 after one; runs over all "
                   "sources of translate, 3 after one")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30))
      ->capture_default_str();
  verb->add_option("--dropout", options->dropout, "Instead of the case's own")
      ->check(CLI::Range(0.0, 0.999));
  verb->add_flag("--recompute", options->training.recompute,
                 "Keep the inputs of layers alone and compute them again in the backward pass");
  verb->add_option("--init", options->init,
                   "A folder with weights.safetensors and batch.safetensors to start from");
  verb->add_option("--lengths", options->attention.lengths,
                   "sdpa: numbers of queries and keys, T,T,...")
      ->delimiter(',')
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->type_name("T,T,...")
      ->capture_default_str();
  verb->add_option("--beam", options->decoding.beam,
                   "translate: hypotheses of a sentence; 1: greedy")
      ->check(CLI::Range(int64_t{1}, int64_t{1024}))
      ->capture_default_str();
  verb->add_option("--batch", options->decoding.batch, "translate: sentences decoded together")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->capture_default_str();
  verb->add_flag("--json", options->json, "machine: one JSON line, not a table");
  verb->footer(
      "Examples:\n  rapt bench small --steps 20 --threads 2\n  rapt bench sdpa --lengths "
      "512,2048\n  rapt bench translate --beam 4\n  rapt bench machine");
  verb->callback([options, verb, &globals, &action] {
    action = [options, verb, &globals] { return bench(*options, *verb, globals); };
  });
}

}  // namespace rapt::cli
