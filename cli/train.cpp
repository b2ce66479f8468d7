// rapt train: a translator from two aligned text files.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/flags.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/program.h"
#include "cli/progress.h"
#include "cli/train_settings.h"
#include "rapt/base/check.h"

namespace rapt::cli {
namespace {

using Options = TrainOptions;

const std::string kAboutSettings =
    "# What this model was trained with, and who said it. Another one like it:\n"
    "#   rapt train train.yaml --out DIR\n";

// The text is read twice, for its words and for its sentences.
void require_files(const data::PairFiles& files) {
  for (const std::filesystem::path& path : {files.source, files.target, files.pairs}) {
    std::error_code ignored;
    const auto status = std::filesystem::status(path, ignored);
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
        !std::filesystem::is_directory(status)) {
      fail(ErrorKind::data,
           "{}: expected a file, got a pipe or device; text is read twice, so write it to a file "
           "first",
           path.string());
    }
  }
}

data::PairVocabularies make_vocabularies(const Options& options, const text::LineOptions& lines,
                                         uint64_t seed) {
  if (!options.source_tokenizer.empty())
    return {text::Subwords::read(options.source_tokenizer),
            text::Subwords::read(options.target_tokenizer)};
  if (options.subwords > 0)
    return data::build_subwords(options.files, {.vocabulary = options.subwords, .seed = seed},
                                lines);
  return data::build_vocabularies(options.files, options.recipe.words, lines);
}

void describe(const data::PairCorpus& corpus, const decode::Translator& translator,
              const Globals& globals) {
  say(globals,
      fmt::format("{} pairs ({} with an empty side and {} too long left out), "
                  "vocabularies of {} and {} entries",
                  corpus.size(), corpus.empty_pairs, corpus.too_long_pairs,
                  translator.source.size(), translator.target.size()),
      {{"pairs", corpus.size()},
       {"empty_pairs", corpus.empty_pairs},
       {"too_long_pairs", corpus.too_long_pairs},
       {"source_vocabulary", translator.source.size()},
       {"target_vocabulary", translator.target.size()}});
  if (corpus.replaced > 0)
    say(globals, fmt::format("{} invalid UTF-8 sequences became U+FFFD", corpus.replaced),
        {{"replaced", corpus.replaced}});
}

// The files that the run reads, by their flags.
std::map<std::string, train::DataFile> files_of(const Options& options) {
  std::map<std::string, std::string> paths;
  const auto add = [&](const char* flag, const std::filesystem::path& path) {
    if (!path.empty()) paths[flag] = path.string();
  };
  add("--source", options.files.source);
  add("--target", options.files.target);
  add("--pairs", options.files.pairs);
  add("--source-tokenizer", options.source_tokenizer);
  add("--target-tokenizer", options.target_tokenizer);
  add("--valid-source", options.valid_files.source);
  add("--valid-target", options.valid_files.target);
  return train::data_files(paths);
}

// What is trained, and from where on.
struct Job {
  decode::Translator translator;
  data::PairCorpus corpus;
  std::optional<train::ValidationSet> validation;
  train::RunState state;
};

Job prepare(Options& options, const std::optional<train::OpenRun>& begun, const Globals& globals) {
  train::Recipe& recipe = options.recipe;
  const text::LineOptions lines = line_options(options.invalid_utf8);
  require_files(options.files);
  Job job;
  if (begun) {
    train::expect_same_files(begun->state, files_of(options));
    job.state = begun->state;
    job.translator = decode::load_translator(begun->checkpoint);
  } else {
    job.translator =
        train::make_translator(recipe, make_vocabularies(options, lines, recipe.fit.seed));
  }
  const decode::Translator& translator = job.translator;
  job.corpus =
      data::read_pairs(options.files, translator.source, translator.target, recipe.pairs(lines));
  describe(job.corpus, translator, globals);
  recipe.settle(job.corpus);
  auto settings = train::settings_of(recipe, options.run);
  settings["subwords"] = std::to_string(options.subwords);
  settings["columns"] = options.columns;
  settings["invalid-utf8"] = options.invalid_utf8;
  if (begun) train::expect_same_settings(begun->state, settings);
  job.state.settings = std::move(settings);
  if (!begun) job.state.files = files_of(options);
  if (!options.valid_files.source.empty()) {
    job.validation = train::read_validation(options.valid_files, translator, recipe.pairs(lines));
    const data::PairCorpus& corpus = job.validation->corpus;
    say(globals,
        fmt::format("{} pairs to validate on ({} with an empty side and {} too long left out)",
                    corpus.size(), corpus.empty_pairs, corpus.too_long_pairs),
        {{"valid_pairs", corpus.size()}});
  }
  return job;
}

// `what` was measured, and what became of it.
void report_validation(const Globals& globals, const std::string& what, const train::Validation& v,
                       const char* note, Fields fields) {
  std::string line =
      fmt::format("{}  valid loss {:.4f}  perplexity {:.2f}", what, v.loss, v.perplexity());
  fields.update({{"valid_loss", v.loss}, {"valid_perplexity", v.perplexity()}});
  if (v.bleu) {
    line += fmt::format("  BLEU {:.2f}  chrF {:.2f}", *v.bleu, *v.chrf);
    fields.update({{"valid_bleu", *v.bleu},
                   {"valid_chrf", *v.chrf},
                   {"source", v.source},
                   {"reference", v.reference},
                   {"translation", v.translation}});
  }
  line += note;
  if (v.bleu) line += fmt::format("\n  {}\n  = {}\n  > {}", v.source, v.reference, v.translation);
  say(globals, line, fields);
}

train::RunResult go(Job& job, const Options& options, const Globals& globals) {
  ProgressPrinter printer(globals);
  const train::RunEvents events{
      .progress = [&](const train::Progress& progress) { printer.report(progress); },
      .validated =
          [&](int64_t step, const train::Validation& v, bool best) {
            printer.end_line();
            report_validation(globals, fmt::format("step {}", step), v,
                              best ? "  (best so far)" : "", {{"step", step}, {"best", best}});
          },
      .averaged =
          [&](const std::vector<int64_t>& steps, const train::Validation& v, bool chosen) {
            report_validation(globals, fmt::format("mean of {} checkpoints", steps.size()), v,
                              chosen ? "  (the best)" : "  (the best single one is better)",
                              {{"averaged", steps}, {"best", chosen}});
          },
      .saved =
          [&](const std::filesystem::path& path) {
            if (!globals.verbose) return;
            printer.end_line();
            note(globals, "saved " + path.string());
          },
      .warn =
          [&](const std::string& line) {
            printer.end_line();
            log(globals, Level::warning, line);
          }};
  return train::run(job.translator, job.corpus, job.validation ? &*job.validation : nullptr,
                    options.recipe, options.run, job.state, events);
}

// A limit that ended the run, by its flag.
const char* flag_of(train::End end) {
  switch (end) {
    case train::End::epochs:
      return "--epochs";
    case train::End::steps:
      return "--steps";
    case train::End::minutes:
      return "--minutes";
    case train::End::patience:
      return "--patience";
    case train::End::stop:
      break;
  }
  return "";
}

// Which of the run's models is the one that was written.
std::string chosen_model(const train::RunResult& result) {
  const std::vector<int64_t>& steps = result.model_steps;
  if (steps.size() > 1)
    return fmt::format("the mean of the checkpoints of steps {}", fmt::join(steps, ", "));
  const bool best = result.best.step == steps.front();
  return fmt::format("the {} model, of step {}", best ? "best" : "last", steps.front());
}

// `from`: the step that the run went on from.
void summarize(const train::RunResult& result, int64_t from, const Options& options,
               const Globals& globals) {
  const bool stopped = !result.ended();
  if (!stopped && result.steps == from) {
    say(globals, fmt::format("the run had ended at step {} by {}; raise that to go on",
                             result.steps, flag_of(result.end)));
    return;
  }
  std::string how = stopped ? "stopped early; " : "";
  if (result.end == train::End::patience)
    how = fmt::format("no better model for {} validations; ", options.run.patience);
  say(globals,
      fmt::format("{}wrote {} after {} steps: {}", how, options.out, result.steps,
                  chosen_model(result)),
      {{"folder", options.out},
       {"steps", result.steps},
       {"best_step", result.best.step},
       {"model_steps", result.model_steps},
       {"stopped_early", stopped}});
  say(globals, stopped ? "go on with: rapt train --resume " + options.out
                       : fmt::format("translate with: rapt translate {0} --beam 5 < FILE; "
                                     "its curves: rapt plot {0}",
                                     options.out));
}

// Without text or a folder there is nothing to do.
void expect_enough(const Options& options, bool has_folder) {
  std::vector<std::string> missing;
  if (options.files.pairs.empty() && options.files.source.empty())
    missing.push_back("--source FILE");
  if (options.files.pairs.empty() && options.files.target.empty())
    missing.push_back("--target FILE");
  if (!has_folder) missing.push_back("--out DIR (the folder of the run and of its model)");
  if (missing.empty()) return;
  std::string all = missing.front();
  for (size_t i = 1; i < missing.size(); ++i)
    all += (i + 1 < missing.size() ? ", " : " and ") + missing[i];
  fail(ErrorKind::usage, "train: expected {}; see rapt train --help", all);
}

// A file's settings are a configuration, whatever is wrong with them.
void settle_as_said(Options& options, const config::Settings& settings) {
  const bool is_from_file = std::any_of(settings.begin(), settings.end(), [](const auto& entry) {
    return entry.second.origin == config::Origin::file;
  });
  try {
    settle(options);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::usage || !is_from_file) throw;
    throw Error(error.what(), ErrorKind::config);
  }
}

// What was said, and the run that goes on, if one does.
struct Plan {
  Options options;
  std::optional<train::OpenRun> begun;
  std::string arguments;  // for the checkpoints
};

Plan make_plan(const Options& given, CLI::App& verb, const Globals& globals) {
  const config::Schema schema = train_schema(verb);
  const bool resumes = !given.resume.empty();
  Plan plan;
  plan.begun =
      resumed_run(given, [&](const std::string& line) { log(globals, Level::warning, line); });
  const auto stored =
      plan.begun ? stored_settings(plan.begun->state, schema) : std::vector<config::Setting>();
  const config::Settings settings = expect_sound(gather(verb, given, stored));
  Options& options = plan.options;
  options = options_of(settings);
  options.out = run_folder(given);
  options.restart = given.restart;
  const bool has_text = !options.files.source.empty() || !options.files.pairs.empty();
  if (resumes && !plan.begun && (given.out.empty() || !has_text))
    fail(ErrorKind::model, "--resume: {} holds no run to go on with", options.out);
  expect_enough(options, resumes || verb.get_option("--out")->count() > 0);
  settle_as_said(options, settings);
  options.run.settings = kAboutSettings + to_yaml(schema, settings);
  plan.arguments = arguments_of(settings, schema);
  if (resumes && !plan.begun) say(globals, "no checkpoint yet: beginning at the start");
  return plan;
}

int train(const Options& given, CLI::App& verb, const Globals& globals) {
  Plan plan = make_plan(given, verb, globals);
  Options& options = plan.options;
  const std::optional<train::OpenRun>& begun = plan.begun;
  if (begun)
    say(globals, fmt::format("going on from step {}", begun->state.place.step),
        {{"step", begun->state.place.step}});
  decode::check_model_folder(options.out);
  if (!begun && !options.restart) train::expect_no_run(options.out);
  Job job = prepare(options, begun, globals);
  job.state.arguments = plan.arguments;
  const int64_t parameters = nn::count_parameters(*job.translator.model);
  const int64_t tokens = options.recipe.fit.batches.tokens;
  say(globals, fmt::format("{} parameters, batches of at most {} tokens", parameters, tokens),
      {{"parameters", parameters}, {"batch_tokens", tokens}});
  const Interrupt interrupt;
  options.recipe.fit.stop = [&] { return interrupt.signal() != 0; };
  const train::RunResult result = go(job, options, globals);
  summarize(result, begun ? begun->state.place.step : -1, options, globals);
  return result.ended() ? 0 : 128 + interrupt.signal();
}

}  // namespace

void add_train(CLI::App& app, Globals& globals, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand(
      "train", "Train a translator from two aligned text files, words or subwords as tokens");
  add_config_arguments(*verb, *options);
  add_train_flags(*verb, *options);
  verb->footer(
      "The defaults are the preset small. A variable stands for each setting: RAPT_DROPOUT for "
      "--dropout. Later ones win: built in, preset, files, environment, flags; rapt config dump "
      "shows them all, with who said them.\n"
      "Words are what stands between spaces and tabs.\n"
      "Text packed by gzip is read unpacked, and so is the one file of a zip archive.\n"
      "SIGINT and SIGTERM stop after the step; the model as it is then is written, and --resume "
      "goes on from there.\n"
      "Examples:\n  rapt train --source train.en --target train.de --out model --epochs 20\n"
      "  rapt train multi30k.yaml --set dropout=0.2 --out model\n"
      "  rapt train --resume model");
  verb->callback([options, verb, &globals, &action] {
    action = [options, verb, &globals] { return train(*options, *verb, globals); };
  });
}

}  // namespace rapt::cli
