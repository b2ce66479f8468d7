// What the settings of rapt train mean together, and where they contradict each other.
#include "cli/train_options.h"
#include "rapt/base/check.h"

namespace rapt::cli {
namespace {

using Options = TrainOptions;

constexpr int64_t kDefaultEpochs = 30;

// Either two files or one with columns.
void settle_files(Options& options) {
  data::PairFiles& files = options.files;
  if (!files.pairs.empty() && !(files.source.empty() && files.target.empty()))
    fail(ErrorKind::usage,
         "train: --pairs stands for --source and --target, give one or the others");
  files.source_column = options.columns.at(0) - '0';
  files.target_column = options.columns.at(2) - '0';
}

void check_subwords(Options& options) {
  if (options.subwords > 0 && !options.source_tokenizer.empty())
    fail(ErrorKind::usage, "train: --subwords and --source-tokenizer exclude each other");
}

void settle_recipe(Options& options) {
  train::Recipe& recipe = options.recipe;
  recipe.model.num_encoder_layers = recipe.model.num_decoder_layers = options.layers;
  recipe.model.dropout = options.dropout;
  recipe.model.position_dropout = options.embedding_dropout.value_or(options.dropout);
  recipe.model.attention_dropout = options.attention_dropout;
  recipe.model.activation_dropout = options.activation_dropout;
  recipe.model.tie_embeddings = models::parse_tie_embeddings(options.tie_embeddings);
  recipe.fit.seed = options.seed;
  if (options.dtype == "bf16") recipe.fit.compute_type = DType::bf16;
  recipe.rule = options.optimizer == "adamw"  ? train::Rule::adamw
                : options.optimizer == "adam" ? train::Rule::adam
                                              : train::Rule::sgd;
  if (options.steps > 0) recipe.fit.steps = options.steps;
  if (options.minutes > 0) recipe.fit.minutes = options.minutes;
  recipe.fit.epochs = options.epochs > 0                         ? options.epochs
                      : options.steps > 0 || options.minutes > 0 ? train::kNoLimit
                                                                 : kDefaultEpochs;
  options.run.folder = options.out;
  options.run.metric = train::parse_validation_metric(options.valid_metric);
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

void check_recipe(Options& options) { options.recipe.check(); }

// What only more settings can mend: each of two files without the other.
void check_both(Options& options) {
  if (options.source_tokenizer.empty() != options.target_tokenizer.empty())
    fail(ErrorKind::usage,
         "train: expected --source-tokenizer and --target-tokenizer together; the same file may "
         "stand for both");
}

void check_validation(Options& options) {
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

using Part = void (*)(Options& options);
constexpr Part kParts[] = {settle_files, check_subwords, settle_recipe, settle_schedule,
                           check_recipe};
constexpr Part kPartsOfTheWhole[] = {check_both, check_validation};

}  // namespace

void settle(TrainOptions& options) {
  for (const Part part : kPartsOfTheWhole) part(options);
  for (const Part part : kParts) part(options);
}

std::vector<Error> contradictions(TrainOptions options) {
  std::vector<Error> found;
  for (const Part part : kParts) {
    try {
      part(options);
    } catch (const Error& error) {
      found.push_back(error);
    }
  }
  return found;
}

}  // namespace rapt::cli
