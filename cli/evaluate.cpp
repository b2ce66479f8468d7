// rapt evaluate: BLEU and chrF of standard input against references.
#include <fmt/format.h>

#include <cmath>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/flags.h"
#include "cli/input.h"
#include "cli/output.h"
#include "cli/program.h"
#include "rapt/base/check.h"
#include "rapt/eval/bleu.h"
#include "rapt/eval/bootstrap.h"
#include "rapt/eval/chrf.h"

namespace rapt::cli {
namespace {

using Json = nlohmann::ordered_json;
using Lines = std::vector<std::string>;
using Metrics = std::vector<std::unique_ptr<eval::Metric>>;

struct Options {
  std::vector<std::string> references;
  std::vector<std::string> metrics = {"bleu", "chrf"};
  std::string against;
  std::string tokenize = "13a", smoothing = "exp";
  eval::BleuOptions bleu;
  eval::ChrfOptions chrf;
  eval::BootstrapOptions bootstrap;
  std::string invalid_utf8 = "strict";
  bool lowercase = false, each = false, json = false;
};

Lines read_all(text::LineReader& reader) {
  Lines lines;
  while (const auto line = reader.next()) lines.emplace_back(*line);
  return lines;
}

struct Texts {
  Lines hypotheses, baseline;
  std::vector<Lines> references;
};

void check_length(const Lines& lines, const std::string& name, const Lines& hypotheses) {
  if (lines.size() == hypotheses.size()) return;
  fail(ErrorKind::data,
       "{} and stdin do not belong together: the first has {} lines, the second {}; line n of one "
       "must be line n of the other",
       name, lines.size(), hypotheses.size());
}

// The files first: what is wrong with them is said before anybody writes to stdin.
Texts read_texts(const Options& options) {
  const text::LineOptions how = line_options(options.invalid_utf8);
  Texts texts;
  const auto read = [&](const std::string& path) {
    text::LineReader reader(std::filesystem::path(path), how);
    return read_all(reader);
  };
  for (const std::string& path : options.references) texts.references.push_back(read(path));
  if (!options.against.empty()) texts.baseline = read(options.against);
  text::LineReader input(std::cin, "stdin", how);
  texts.hypotheses = read_all(input);
  check_stdin(input);
  if (texts.hypotheses.empty())
    fail(ErrorKind::data, "stdin: expected translations, a sentence a line, got an empty input");
  for (size_t i = 0; i < options.references.size(); ++i)
    check_length(texts.references[i], options.references[i], texts.hypotheses);
  if (!options.against.empty()) check_length(texts.baseline, options.against, texts.hypotheses);
  return texts;
}

Metrics make_metrics(Options& options) {
  options.bleu.tokenizer = eval::parse_tokenizer(options.tokenize);
  options.bleu.smoothing = eval::parse_smoothing(options.smoothing);
  options.bleu.lowercase = options.chrf.lowercase = options.lowercase;
  Metrics metrics;
  for (const std::string& name : options.metrics) {
    if (name == "bleu") {
      metrics.push_back(std::make_unique<eval::Bleu>(options.bleu));
    } else {
      metrics.push_back(std::make_unique<eval::Chrf>(options.chrf));
    }
  }
  return metrics;
}

double rounded(double value, double places) { return std::round(value * places) / places; }

Json as_json(const eval::Metric& metric, double score, const std::string& signature,
             const std::string& details) {
  Json json = {{"name", metric.name()}, {"score", rounded(score, 100)}, {"signature", signature}};
  if (!details.empty()) json["verbose_score"] = details;
  return json;
}

// "BLEU|nrefs:1|... = 34.12 ...", as sacreBLEU prints it.
void print_score(const eval::Metric& metric, const Texts& texts, bool json) {
  const eval::Counts counts =
      eval::sum(eval::count_segments(metric, texts.hypotheses, texts.references));
  const std::string signature = eval::signature(metric, texts.references.size());
  const std::string details = metric.details(counts);
  if (json) {
    print(as_json(metric, metric.score(counts), signature, details).dump() + "\n");
  } else {
    print(fmt::format("{}|{} = {:.2f}{}{}\n", metric.name(), signature, metric.score(counts),
                      details.empty() ? "" : " ", details));
  }
}

// A line for each segment: the scores, a tab between them.
void print_segments(const Metrics& metrics, const Texts& texts, bool json) {
  std::vector<std::unique_ptr<eval::Metric>> of_segments;
  std::vector<std::vector<eval::Counts>> counts;
  for (const auto& metric : metrics) {
    of_segments.push_back(metric->of_segments());
    counts.push_back(eval::count_segments(*of_segments.back(), texts.hypotheses, texts.references));
  }
  for (size_t i = 0; i < texts.hypotheses.size(); ++i) {
    Json object = {{"line", i + 1}};
    std::string line;
    for (size_t m = 0; m < of_segments.size(); ++m) {
      const double score = of_segments[m]->score(counts[m][i]);
      object[of_segments[m]->name()] = rounded(score, 100);
      line += fmt::format("{}{:.2f}", m == 0 ? "" : "\t", score);
    }
    print((json ? object.dump() : line) + "\n");
  }
}

void print_comparison(const eval::Metric& metric, const Texts& texts, const Options& options) {
  const auto baseline = eval::count_segments(metric, texts.baseline, texts.references);
  const auto system = eval::count_segments(metric, texts.hypotheses, texts.references);
  const auto result = eval::paired_bootstrap(metric, baseline, system, options.bootstrap);
  const eval::Counts counts = eval::sum(system);
  const double before = metric.score(eval::sum(baseline)), now = metric.score(counts);
  const std::string signature =
      eval::signature(metric, texts.references.size(),
                      {{"bs", fmt::format("{}", options.bootstrap.samples)},
                       {"seed", fmt::format("{}", options.bootstrap.seed)}});
  if (options.json) {
    Json json = as_json(metric, now, signature, metric.details(counts));
    json["confidence_mean"] = rounded(result.system.mean, 100);
    json["confidence_var"] = rounded(result.system.half_width, 100);
    json["baseline"] = {{"score", rounded(before, 100)},
                        {"confidence_mean", rounded(result.baseline.mean, 100)},
                        {"confidence_var", rounded(result.baseline.half_width, 100)}};
    json["p_value"] = rounded(result.p_value, 10000);
    print(json.dump() + "\n");
    return;
  }
  print(fmt::format("{}|{}\n", metric.name(), signature));
  const auto row = [](const std::string& name, double score, const eval::Interval& interval) {
    return fmt::format("  {}: {:.2f} ({:.2f} ± {:.2f})", name, score, interval.mean,
                       interval.half_width);
  };
  print(row(options.against, before, result.baseline) + "\n");
  print(row("stdin", now, result.system) + fmt::format(" {:+.2f} p = {:.4f}{}\n", now - before,
                                                       result.p_value,
                                                       result.p_value < 0.05 ? "*" : ""));
}

int evaluate(Options options, const Globals& globals) {
  if (options.each && !options.against.empty())
    fail(ErrorKind::usage, "evaluate: --each and --against exclude each other");
  options.bootstrap.seed = globals.seed;
  const Metrics metrics = make_metrics(options);
  const Texts texts = read_texts(options);
  if (options.each) {
    print_segments(metrics, texts, options.json);
    return 0;
  }
  for (const auto& metric : metrics) {
    if (options.against.empty()) {
      print_score(*metric, texts, options.json);
    } else {
      print_comparison(*metric, texts, options);
    }
  }
  return 0;
}

void add_metric_flags(CLI::App& verb, Options& options) {
  verb.add_option("--metrics", options.metrics, "Which, with commas between: bleu, chrf")
      ->type_name("NAMES")
      ->delimiter(',')
      ->take_last()
      ->check(one_of({"bleu", "chrf"}))
      ->default_str("bleu,chrf");
  verb.add_option("--tokenize", options.tokenize,
                  "BLEU's tokens: 13a, intl, char, zh, or none for text that is tokenized")
      ->type_name("NAME")
      ->check(one_of({"13a", "intl", "char", "zh", "none"}))
      ->capture_default_str();
  verb.add_flag("--lowercase", options.lowercase, "Compare in lower case");
  verb.add_option("--smoothing", options.smoothing,
                  "What BLEU makes of orders without a match: exp, floor, add-k, none")
      ->type_name("NAME")
      ->check(one_of({"exp", "floor", "add-k", "none"}))
      ->capture_default_str();
  verb.add_option("--smoothing-value", options.bleu.smoothing_value,
                  "Of floor (default 0.1) and add-k (default 1)")
      ->type_name("X")
      ->check(number_above_zero());
  verb.add_option("--char-order", options.chrf.char_order, "chrF's longest character n-grams")
      ->type_name("N")
      ->check(whole(1, 100))
      ->capture_default_str();
  verb.add_option("--word-order", options.chrf.word_order,
                  "chrF's longest word n-grams; 2 for chrF++")
      ->type_name("N")
      ->check(whole(0, 100))
      ->capture_default_str();
  verb.add_option("--beta", options.chrf.beta, "How much more chrF's recall counts than precision")
      ->type_name("N")
      ->check(whole(1, 1000))
      ->capture_default_str();
}

}  // namespace

void add_evaluate(CLI::App& app, Globals& globals, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand(
      "evaluate", "Score translations on standard input against references: BLEU and chrF");
  verb->add_option("--reference", options->references,
                   "What a person wrote, line by line; may be given several times")
      ->type_name("FILE")
      ->take_all()
      ->expected(1)
      ->required();
  add_metric_flags(*verb, *options);
  verb->add_option("--against", options->against,
                   "Translations of another system: is the difference more than chance? (paired "
                   "bootstrap, drawn by --seed)")
      ->type_name("FILE");
  verb->add_option("--samples", options->bootstrap.samples, "Samples of the bootstrap")
      ->type_name("N")
      ->check(whole(1, 10'000'000))
      ->capture_default_str();
  verb->add_flag("--each", options->each, "The scores of each line instead, a tab between them");
  verb->add_flag("--json", options->json, "A JSON object a line");
  add_invalid_utf8(*verb, options->invalid_utf8);
  verb->footer(
      "Numbers and signatures are sacreBLEU's; `version` names this program.\n"
      "Example:\n  rapt translate model < test.de | rapt evaluate --reference test.en");
  verb->callback([options, &globals, &action] {
    action = [options, &globals] { return evaluate(*options, globals); };
  });
}

}  // namespace rapt::cli
