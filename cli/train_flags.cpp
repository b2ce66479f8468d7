// The flags of rapt train.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/flags.h"
#include "cli/input.h"
#include "cli/train_options.h"
#include "rapt/base/check.h"
#include "rapt/base/limits.h"

namespace rapt::cli {
namespace {

using Options = TrainOptions;

constexpr int64_t kMostSteps = int64_t{1} << 40;
constexpr int64_t kDefaultEpochs = 30;

// Flags that concern this call alone.
const std::set<std::string> kNotStored = {"--help", "--resume", "--restart", "--out"};
const std::set<std::string> kPaths = {"--source",          "--target",       "--pairs",
                                      "--valid-source",    "--valid-target", "--source-tokenizer",
                                      "--target-tokenizer"};

// Sizes of models, by name: "--flag=value" for what differs from the defaults, which are small's.
const std::map<std::string, std::vector<std::string>> kPresets = {
    {"tiny",
     {"--layers=4", "--d-model=128", "--nhead=4", "--dim-feedforward=256", "--dropout=0.3"}},
    {"small", {}},
    {"base",
     {"--layers=6", "--d-model=512", "--nhead=8", "--dim-feedforward=2048",
      "--schedule=inverse_sqrt", "--learning-rate=0.0007", "--warmup=4000"}},
    {"big",
     {"--layers=6", "--d-model=1024", "--nhead=16", "--dim-feedforward=4096", "--dropout=0.3",
      "--schedule=inverse_sqrt", "--learning-rate=0.0005", "--warmup=4000"}}};

CLI::Option* add_count(CLI::App& verb, const char* name, int64_t& value, int64_t low,
                       const char* help) {
  return verb.add_option(name, value, help)->type_name("N")->check(whole(low, kMostSteps));
}

CLI::Option* add_rate(CLI::App& verb, const char* name, double& value, const char* help) {
  return verb.add_option(name, value, help)->type_name("RATE")->check(number_above_zero());
}

CLI::Option* add_share(CLI::App& verb, const char* name, double& value, const char* help) {
  return verb.add_option(name, value, help)
      ->type_name("P")
      ->check(fraction())
      ->capture_default_str();
}

CLI::Option* add_choice(CLI::App& verb, const char* name, std::string& value,
                        std::vector<std::string> choices, const char* help) {
  return verb.add_option(name, value, help)
      ->type_name("NAME")
      ->check(one_of(std::move(choices)))
      ->capture_default_str();
}

void add_model_flags(CLI::App& verb, Options& options) {
  std::vector<std::string> presets;
  presets.reserve(kPresets.size());
  for (const auto& [name, flags] : kPresets) presets.push_back(name);
  verb.add_option("--preset", options.preset,
                  "Sizes of a model, and rates that suit it; flags that are given win (default: "
                  "small)")
      ->type_name("NAME")
      ->check(one_of(presets));
  const Limits limits;
  models::EncoderDecoderConfig& model = options.recipe.model;
  const auto size = [&](const char* name, int64_t& value, int64_t low, int64_t high,
                        const char* help) {
    verb.add_option(name, value, help)
        ->type_name("N")
        ->check(whole(low, high))
        ->capture_default_str();
  };
  size("--d-model", model.d_model, 1, limits.width, "Width of the model");
  size("--nhead", model.nhead, 1, limits.width, "Attention heads; they divide the width");
  size("--dim-feedforward", model.dim_feedforward, 1, limits.width,
       "Hidden units of the feed-forward layers");
  size("--layers", options.layers, 0, limits.layers, "Encoder layers, and decoder layers");
  size("--max-len", model.max_len, 2, limits.positions,
       "The most words of a sentence; pairs with longer ones are left out");
  add_share(verb, "--dropout", options.dropout,
            "Share of the elements that are dropped in training, in [0, 1)");
  add_choice(verb, "--tie-embeddings", options.tie_embeddings, {"none", "two", "three"},
             "Which share a matrix: none, the target embedding and the projection (two), or the "
             "source embedding too (three, with a joint vocabulary)");
  verb.add_flag("--norm-first", model.norm_first, "Normalise before each sublayer, not after it");
}

void add_optimizer_flags(CLI::App& verb, Options& options) {
  train::Recipe& recipe = options.recipe;
  add_choice(verb, "--optimizer", options.optimizer, {"adamw", "adam", "sgd"},
             "The rule of a step");
  add_rate(verb, "--learning-rate", options.learning_rate,
           "The highest rate, reached by the warm-up (default: 0.001)");
  add_choice(verb, "--schedule", options.schedule,
             {"constant", "inverse_sqrt", "noam", "linear", "cosine"},
             "The rate after the warm-up; noam: that of the paper, from width and warm-up");
  add_count(verb, "--warmup", recipe.schedule.warmup, 0,
            "Steps of a linear rise of the learning rate")
      ->capture_default_str();
  add_rate(verb, "--noam-factor", options.noam_factor, "Times the paper's rate (default: 1)");
  add_count(verb, "--decay-steps", recipe.schedule.total, 1,
            "linear, cosine: the step of the last rate (default: the last step)");
  verb.add_option("--final-rate", recipe.schedule.final_rate, "linear, cosine: the last rate")
      ->type_name("RATE")
      ->check(number_from_zero())
      ->capture_default_str();
  add_share(verb, "--beta1", recipe.adam.beta1, "Of Adam: how much of the mean gradient is kept");
  add_share(verb, "--beta2", recipe.adam.beta2, "Of Adam: how much of the mean square is kept");
  add_rate(verb, "--epsilon", recipe.adam.epsilon, "Of Adam: beside the root in the divisor")
      ->capture_default_str();
  add_share(verb, "--momentum", recipe.momentum, "Of sgd");
  verb.add_option("--weight-decay", recipe.adam.common.weight_decay,
                  "How much matrices shrink in a step, times the rate")
      ->type_name("RATE")
      ->check(number_from_zero())
      ->capture_default_str();
  verb.add_option("--max-norm", recipe.adam.common.max_norm,
                  "Larger gradients are scaled down to this norm; 0: never")
      ->type_name("NORM")
      ->check(number_from_zero())
      ->capture_default_str();
  add_count(verb, "--max-skips", recipe.fit.max_skips, 0,
            "Steps in a row that may be left out since a loss or gradient is not finite; one more "
            "ends the run with exit code 6")
      ->capture_default_str();
}

void add_learning_flags(CLI::App& verb, Options& options) {
  train::Recipe& recipe = options.recipe;
  add_count(verb, "--epochs", options.epochs, 1,
            "Passes over the pairs (default: 30, or any number with --steps or --minutes)");
  add_count(verb, "--steps", options.steps, 1, "Ends the run after so many steps");
  verb.add_option("--minutes", options.minutes, "Ends the run after so much time")
      ->type_name("M")
      ->check(number_above_zero());
  add_count(verb, "--batch-tokens", recipe.fit.batches.tokens, 1,
            "Tokens of a batch at most, source and target together (default: an eighth of the "
            "corpus, but no more than 4096)");
  add_count(verb, "--accumulate", recipe.fit.accumulate, 1,
            "Batches of a step, as one batch with all their sentences")
      ->capture_default_str();
  add_count(verb, "--min-count", recipe.words.min_count, 1, "Rarer words become <unk>")
      ->capture_default_str();
  add_choice(verb, "--dtype", options.dtype, {"f32", "bf16"},
             "What is computed in: f32, or bf16 with parameters of f32, faster on CPUs that "
             "multiply it");
  add_share(verb, "--label-smoothing", recipe.fit.label_smoothing,
            "Share of the probability that is spread over all words, in [0, 1)");
  add_share(verb, "--ema", options.run.ema,
            "Use a moving average of the weights that keeps this share in a step, e.g. 0.999");
}

void add_validation_flags(CLI::App& verb, Options& options) {
  verb.add_option("--valid-source", options.valid_files.source,
                  "Text to measure the model on: the best one is what is written")
      ->type_name("FILE");
  verb.add_option("--valid-target", options.valid_files.target, "Its translations, line by line")
      ->type_name("FILE");
  add_choice(verb, "--valid-metric", options.valid_metric, {"loss", "bleu", "chrf"},
             "What says which model is the best; bleu and chrf translate the text");
  add_count(verb, "--valid-every", options.run.valid_every, 1,
            "Steps between validations (default: an epoch)");
  add_count(verb, "--patience", options.run.patience, 1,
            "Ends the run after so many validations without a better one");
}

void add_saving_flags(CLI::App& verb, Options& options) {
  add_count(verb, "--save-every", options.run.save_every, 1,
            "Steps between regular checkpoints (default: an epoch, where several are kept)");
  verb.add_option("--save-minutes", options.run.save_minutes,
                  "A checkpoint is written after so much time without one")
      ->type_name("M")
      ->check(number_above_zero())
      ->capture_default_str();
  add_count(verb, "--keep-last", options.run.keep_last, 1,
            "Regular checkpoints that stay, beside the newest and the best")
      ->capture_default_str();
  add_count(verb, "--average", options.run.average, 1,
            "The model at the end is the mean of so many regular checkpoints, unless the best one "
            "does better in validation")
      ->capture_default_str();
  add_count(verb, "--log-every", options.run.log_every, 1, "Steps of a line of metrics.jsonl")
      ->capture_default_str();
}

// The flags that may be missing where a folder to go on with is given.
void add_text_flags(CLI::App& verb, Options& options) {
  CLI::Option* source = verb.add_option("--source", options.files.source,
                                        "Text to translate from, one sentence a line")
                            ->type_name("FILE")
                            ->required();
  CLI::Option* target =
      verb.add_option("--target", options.files.target, "The translations, line by line")
          ->type_name("FILE")
          ->required();
  verb.add_option("--pairs", options.files.pairs,
                  "Both in one file instead, with tabs between the columns, as Tatoeba's are")
      ->type_name("FILE")
      ->each([source, target](const std::string&) {
        source->required(false);
        target->required(false);
      });
  verb.add_option("--columns", options.columns, "Which columns of --pairs are source and target")
      ->type_name("N,N")
      ->capture_default_str();
  verb.add_option("--subwords", options.subwords,
                  "Learn subwords from both sides, N pieces at most, instead of words")
      ->type_name("N")
      ->check(whole(1, 1'000'000));
  verb.add_option("--source-tokenizer", options.source_tokenizer,
                  "A SentencePiece .model for the source, as rapt tokenize learns them")
      ->type_name("FILE");
  verb.add_option("--target-tokenizer", options.target_tokenizer, "The same for the target")
      ->type_name("FILE");
  CLI::Option* out = verb.add_option("--out", options.out,
                                     "The folder of the run and of its model; an old model is "
                                     "replaced at the end")
                         ->type_name("DIR")
                         ->required();
  add_invalid_utf8(verb, options.invalid_utf8, "strict: an error; replace: U+FFFD, counted");
  verb.add_option("--resume", options.resume,
                  "Go on with the run in DIR, with its flags, or with that of --out; the result is "
                  "what it would have been without the stop")
      ->type_name("[DIR]")
      ->expected(0, 1)
      ->each([source, target, out](const std::string& folder) {
        if (folder.empty()) return;
        for (CLI::Option* option : {source, target, out}) option->required(false);
      });
  verb.add_flag("--restart", options.restart, "Begin anew where a run has stopped in --out");
}

// Either two files or one with columns; tokenizers from files for both sides, or none.
void check_choices(Options& options) {
  data::PairFiles& files = options.files;
  if (!files.pairs.empty() && !(files.source.empty() && files.target.empty()))
    fail(ErrorKind::usage,
         "train: --pairs stands for --source and --target, give one or the others");
  const auto digit = [](char c) { return c >= '1' && c <= '9'; };
  const std::string& columns = options.columns;
  if (columns.size() != 3 || !digit(columns[0]) || columns[1] != ',' || !digit(columns[2]))
    fail(ErrorKind::usage, "--columns: expected two numbers from 1 to 9 such as 2,1, got {}",
         columns);
  files.source_column = columns[0] - '0';
  files.target_column = columns[2] - '0';
  if (options.source_tokenizer.empty() != options.target_tokenizer.empty())
    fail(ErrorKind::usage,
         "train: expected --source-tokenizer and --target-tokenizer together; the same file may "
         "stand for both");
  if (options.subwords > 0 && !options.source_tokenizer.empty())
    fail(ErrorKind::usage, "train: --subwords and --source-tokenizer exclude each other");
}

void settle_schedule(Options& options) {
  optim::Schedule& schedule = options.recipe.schedule;
  const bool falls = options.schedule == "linear" || options.schedule == "cosine";
  if (!falls && (schedule.total > 0 || schedule.final_rate > 0))
    fail(ErrorKind::config,
         "--decay-steps and --final-rate: expected --schedule linear or cosine, "
         "got {}",
         options.schedule);
  if (options.schedule == "noam") {
    if (options.learning_rate > 0)
      fail(ErrorKind::config,
           "--learning-rate: --schedule noam takes its rate from the width and the warm-up; scale "
           "it by --noam-factor, or take inverse_sqrt");
    const double factor = options.noam_factor > 0 ? options.noam_factor : 1;
    schedule = with_error_kind(ErrorKind::config, "--schedule", [&] {
      return optim::noam(options.recipe.model.d_model, schedule.warmup, factor);
    });
    return;
  }
  if (options.noam_factor > 0)
    fail(ErrorKind::config, "--noam-factor: expected --schedule noam, got {}", options.schedule);
  if (options.learning_rate > 0) schedule.rate = options.learning_rate;
  schedule.decay = options.schedule == "constant"       ? optim::Decay::constant
                   : options.schedule == "inverse_sqrt" ? optim::Decay::inverse_sqrt
                   : options.schedule == "linear"       ? optim::Decay::linear
                                                        : optim::Decay::cosine;
}

void check_validation(const Options& options) {
  const data::PairFiles& files = options.valid_files;
  if (files.source.empty() != files.target.empty())
    fail(ErrorKind::usage, "train: expected --valid-source and --valid-target together");
  const bool asked =
      options.run.valid_every > 0 || options.run.patience > 0 || options.valid_metric != "loss";
  if (files.source.empty() && asked)
    fail(ErrorKind::usage,
         "train: --valid-every, --valid-metric and --patience need --valid-source and "
         "--valid-target");
}

}  // namespace

void add_train_flags(CLI::App& verb, TrainOptions& options) {
  add_text_flags(verb, options);
  add_learning_flags(verb, options);
  add_optimizer_flags(verb, options);
  add_validation_flags(verb, options);
  add_saving_flags(verb, options);
  add_model_flags(verb, options);
}

void settle(TrainOptions& options, uint64_t seed) {
  check_choices(options);
  check_validation(options);
  train::Recipe& recipe = options.recipe;
  recipe.model.num_encoder_layers = recipe.model.num_decoder_layers = options.layers;
  recipe.model.dropout = recipe.model.position_dropout = options.dropout;
  recipe.model.tie_embeddings = models::parse_tie_embeddings(options.tie_embeddings);
  recipe.fit.seed = seed;
  if (options.dtype == "bf16") recipe.fit.compute_type = DType::bf16;
  recipe.rule = options.optimizer == "adamw"  ? train::Rule::adamw
                : options.optimizer == "adam" ? train::Rule::adam
                                              : train::Rule::sgd;
  if (options.steps > 0) recipe.fit.steps = options.steps;
  if (options.minutes > 0) recipe.fit.minutes = options.minutes;
  recipe.fit.epochs = options.epochs > 0                         ? options.epochs
                      : options.steps > 0 || options.minutes > 0 ? train::kNoLimit
                                                                 : kDefaultEpochs;
  settle_schedule(options);
  options.run.folder = options.out;
  options.run.metric = train::parse_validation_metric(options.valid_metric);
  recipe.check();
}

std::string given_flags(const CLI::App& verb) {
  nlohmann::ordered_json flags = nlohmann::ordered_json::object();
  for (const CLI::Option* option : verb.get_options()) {
    const std::string name = option->get_name();
    if (option->count() == 0 || kNotStored.contains(name)) continue;
    const std::string value = option->results().back();
    flags[name] = kPaths.contains(name) ? std::filesystem::absolute(value).string() : value;
  }
  return flags.dump();
}

TrainOptions with_stored_flags(const std::string& stored, const CLI::App& given) {
  const auto flags = nlohmann::ordered_json::parse(stored, nullptr, false);
  TrainOptions options;
  CLI::App app;
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add_train_flags(app, options);
  std::vector<std::string> arguments;
  std::string preset = "small";
  const auto add = [&](const std::string& name, const std::string& value) {
    if (name == "--preset") preset = value;
    arguments.push_back(name + "=" + value);
  };
  if (flags.is_object()) {
    for (const auto& [name, value] : flags.items()) {
      if (value.is_string()) add(name, value.get<std::string>());
    }
  }
  for (const CLI::Option* option : given.get_options()) {
    if (option->count() > 0 && option->get_name() != "--resume")
      add(option->get_name(), option->results().back());
  }
  if (const auto found = kPresets.find(preset); found != kPresets.end()) {
    std::vector<std::string> all = found->second;
    // A preset's rate belongs to its schedule.
    const auto is_schedule = [](const std::string& a) { return a.starts_with("--schedule="); };
    if (std::any_of(arguments.begin(), arguments.end(), is_schedule))
      std::erase_if(all, [](const std::string& a) { return a.starts_with("--learning-rate="); });
    arguments.insert(arguments.begin(), all.begin(), all.end());
  }
  app.get_option("--out")->required(false);
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    fail(ErrorKind::model, "the run's own flags cannot be read back: {}", error.what());
  }
  return options;
}

}  // namespace rapt::cli
