// The flags of rapt train.
#include "cli/flags.h"
#include "cli/input.h"
#include "cli/train_options.h"
#include "rapt/base/limits.h"
#include "rapt/config/presets.h"

namespace rapt::cli {
namespace {

using Options = TrainOptions;

constexpr int64_t kMostSteps = int64_t{1} << 40;

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
  verb.add_option("--preset", options.preset,
                  "Sizes of a model, and rates that suit it; whatever else is said wins (default: "
                  "small)")
      ->type_name("NAME")
      ->check(one_of(config::preset_names()));
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
  const auto own_share = [&](const char* name, std::optional<double>& value, const char* help) {
    verb.add_option(name, value, help)->type_name("P")->check(fraction());
  };
  own_share("--attention-dropout", options.attention_dropout,
            "Of attention weights (default: that of --dropout)");
  own_share("--activation-dropout", options.activation_dropout,
            "Of the hidden units of the feed-forward layers (default: that of --dropout)");
  own_share("--embedding-dropout", options.embedding_dropout,
            "Of embeddings with their positions (default: that of --dropout)");
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
  verb.add_flag("--recompute", recipe.fit.recompute,
                "Keep only the inputs of layers for the backward pass and compute the rest again: "
                "less memory, more time, the same model");
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
  verb.add_flag("--tensorboard,!--no-tensorboard", options.run.tensorboard,
                "Write metrics.jsonl's numbers as TensorBoard's event file, too (default: yes)")
      ->default_str("true");
}

void add_text_flags(CLI::App& verb, Options& options) {
  verb.add_option("--source", options.files.source, "Text to translate from, one sentence a line")
      ->type_name("FILE");
  verb.add_option("--target", options.files.target, "The translations, line by line")
      ->type_name("FILE");
  verb.add_option("--pairs", options.files.pairs,
                  "Both in one file instead, with tabs between the columns, as Tatoeba's are")
      ->type_name("FILE");
  verb.add_option("--columns", options.columns, "Which columns of --pairs are source and target")
      ->type_name("N,N")
      ->check(two_columns())
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
  add_invalid_utf8(verb, options.invalid_utf8, "strict: an error; replace: U+FFFD, counted");
}

void add_call_flags(CLI::App& verb, Options& options) {
  verb.add_option(
          "--out", options.out,
          "The folder of the run and of its model; an old model is replaced at the end, a run by "
          "--restart alone")
      ->type_name("DIR");
  verb.add_option("--resume", options.resume,
                  "Go on with the run in DIR, with its settings, or with that of --out; the result "
                  "is what it would have been without the stop")
      ->type_name("[DIR]")
      ->expected(0, 1);
  verb.add_flag("--restart", options.restart, "Begin anew where --out holds a run, which is lost");
}

}  // namespace

void add_train_flags(CLI::App& verb, TrainOptions& options) {
  add_text_flags(verb, options);
  add_call_flags(verb, options);
  add_learning_flags(verb, options);
  add_optimizer_flags(verb, options);
  add_validation_flags(verb, options);
  add_saving_flags(verb, options);
  add_model_flags(verb, options);
}

void add_config_arguments(CLI::App& verb, TrainOptions& options) {
  verb.add_option("CONFIG", options.configs,
                  "YAML files of settings, named as the flags; later ones win, flags over all")
      ->type_name("FILE.yaml");
  verb.add_option("--set", options.sets, "A setting by its key, as in the files: dropout=0.2")
      ->type_name("KEY=VALUE")
      ->take_all()
      ->allow_extra_args(false);
}

}  // namespace rapt::cli
