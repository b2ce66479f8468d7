// rapt bench: what a case takes here and now.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "rapt/measure/training.h"

namespace rapt::cli {
namespace {

struct Options {
  std::string name;
  measure::TrainingOptions training;
  std::string init;
  double dropout = -1;
  std::string dtype = "f32";
  bool json = false;  // one JSON line a case is all there is; the flag is there for scripts
};

double rounded(double value, double unit) { return std::round(value / unit) * unit; }

int bench(Options options, const Globals& globals) {
  options.training.init = options.init;
  options.training.seed = globals.seed;
  if (options.dropout >= 0) options.training.dropout = options.dropout;
  const measure::TrainingResult r = measure::run_training(options.name, options.training);
  nlohmann::ordered_json j;
  j["case"] = r.name;
  j["dtype"] = options.dtype;
  j["threads"] = r.threads;
  j["step_ms"] = rounded(r.step_ms, 0.01);
  j["min"] = rounded(r.min_ms, 0.01);
  j["max"] = rounded(r.max_ms, 0.01);
  j["tokens_per_s"] = rounded(r.tokens_per_s, 0.1);
  j["flops_per_s"] = rounded(r.flops_per_s, 1e6);
  j["fraction_of_peak"] = rounded(r.fraction_of_peak, 1e-4);
  j["rss_mib"] = r.rss_mib;
  j["loss"] = r.loss;
  fmt::print("{}\n", j.dump());
  return 0;
}

}  // namespace

void add_bench(CLI::App& app, Globals& globals, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb =
      app.add_subcommand("bench", "Measure a case, or the machine; one JSON line a case on stdout");
  verb->add_option("case", options->name, "toy or small")->required();
  verb->add_option("--dtype", options->dtype, "What is computed in: f32")
      ->check(CLI::IsMember({"f32"}))
      ->capture_default_str();
  verb->add_option("--steps", options->training.steps, "Timed steps, after three that are not")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30))
      ->capture_default_str();
  verb->add_option("--dropout", options->dropout, "Instead of the case's own")
      ->check(CLI::Range(0.0, 0.999));
  verb->add_option("--init", options->init,
                   "A folder with weights.safetensors and batch.safetensors to start from");
  verb->add_flag("--json", options->json, "JSON lines, which is what is always printed");
  verb->footer("Example:\n  rapt bench small --steps 20 --threads 2");
  verb->callback([options, &globals, &action] {
    action = [options, &globals] { return bench(*options, globals); };
  });
}

}  // namespace rapt::cli
