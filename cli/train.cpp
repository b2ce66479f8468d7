// rapt train: a translator from two aligned text files.
#include <fmt/format.h>

#include <filesystem>

#include "cli/program.h"
#include "cli/progress.h"
#include "cli/words.h"
#include "rapt/base/check.h"
#include "rapt/optim/optimizer.h"
#include "rapt/optim/schedule.h"
#include "rapt/train/seq2seq.h"

namespace rapt::cli {
namespace {

// The preset `small`, and what flags may change of it.
struct Options {
  std::string source, target, out;
  int64_t epochs = 30;
  int64_t batch_tokens = 4096;
  int64_t min_count = 1;
  int64_t warmup = 100;
  double rate = 1e-3;
  double dropout = 0.1;
  double label_smoothing = 0.1;
  int64_t d_model = 256, nhead = 4, dim_feedforward = 1024, layers = 3;
  int64_t max_len = 512;
};

models::EncoderDecoderConfig configuration(const Options& options,
                                           const data::PairVocabularies& words) {
  models::EncoderDecoderConfig config;
  config.src_vocab_size = words.source.size();
  config.tgt_vocab_size = words.target.size();
  config.d_model = options.d_model;
  config.nhead = options.nhead;
  config.dim_feedforward = options.dim_feedforward;
  config.num_encoder_layers = config.num_decoder_layers = options.layers;
  config.dropout = config.position_dropout = options.dropout;
  config.max_len = options.max_len;
  config.scale_embeddings = true;
  config.tie_embeddings = models::TieEmbeddings::two;
  config.pad_id = *words.target.special().pad;
  config.start_id = *words.target.special().start;
  config.end_id = *words.target.special().end;
  config.unk_id = words.target.special().unk;
  with_error_kind(ErrorKind::config, "train", [&] { config.check(); });
  return config;
}

// Embeddings that are tied to the projection and scaled by sqrt(d_model) begin with deviation 1 /
// sqrt(d_model).
void shrink_embeddings(const models::EncoderDecoder& model) {
  const double deviation = 1 / std::sqrt(static_cast<double>(model.config().d_model));
  model.visit(
      [&](const NamedParameter& p) {
        if (p.name != "source_embedding.weight" && p.name != "target_embedding.weight") return;
        Tensor table = p.value();
        float* value = table.data<float>();
        for (int64_t i = 0; i < table.numel(); ++i) value[i] *= static_cast<float>(deviation);
      },
      "");
}

int train(const Options& options, const Globals& globals) {
  const data::PairVocabularies words =
      data::build_vocabularies(options.source, options.target, {.min_count = options.min_count});
  const data::PairCorpus corpus =
      data::read_pairs(options.source, options.target, words.source, words.target,
                       {.max_source_words = options.max_len,
                        .max_target_words = options.max_len - 1,
                        .skip_too_long = true});
  if (corpus.size() == 0)
    fail(ErrorKind::data, "train: no pair of {} and {} is left to learn from", options.source,
         options.target);
  say(globals, fmt::format("{} pairs ({} with an empty side and {} too long left out), {} source "
                           "and {} target words",
                           corpus.size(), corpus.empty_pairs, corpus.too_long_pairs,
                           words.source.size(), words.target.size()));
  Rng rng(globals.seed);
  Translator translator;
  translator.source = words.source;
  translator.target = words.target;
  translator.model = std::make_unique<models::EncoderDecoder>(configuration(options, words),
                                                              nn::Init{.rng = &rng});
  shrink_embeddings(*translator.model);
  say(globals, fmt::format("{} parameters", nn::count_parameters(*translator.model)));
  const auto optimizer = optim::make_adamw(
      nn::parameters(*translator.model),
      {.beta2 = 0.98, .epsilon = 1e-9, .common = {.weight_decay = 0.01, .max_norm = 1}});
  const optim::Schedule schedule{.rate = options.rate, .warmup = options.warmup};
  {
    ProgressPrinter printer(globals, 1);
    train::fit(
        *translator.model, corpus, *optimizer,
        {.epochs = options.epochs,
         .batches = {.tokens = options.batch_tokens, .like_length = true, .seed = globals.seed},
         .label_smoothing = options.label_smoothing,
         .seed = globals.seed,
         .rate = [&](int64_t step) { return schedule.at(step + 1); }},
        [&](const train::Progress& progress) { printer.report(progress); });
  }
  save_translator(translator, options.out);
  say(globals, fmt::format("wrote {}", options.out));
  return 0;
}

}  // namespace

void add_train(CLI::App& app, Globals& globals, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand(
      "train", "Train a translator from two aligned text files, words as tokens");
  const auto positive = CLI::Range(int64_t{1}, int64_t{1} << 40);
  verb->add_option("--source", options->source, "Text to translate from, one sentence a line")
      ->required();
  verb->add_option("--target", options->target, "The translations, line by line")->required();
  verb->add_option("--out", options->out,
                   "The model folder to write; an old one is replaced at the end")
      ->required();
  verb->add_option("--epochs", options->epochs, "Passes over the pairs")
      ->check(positive)
      ->capture_default_str();
  verb->add_option("--batch-tokens", options->batch_tokens,
                   "Tokens of a step, source and target together")
      ->check(positive)
      ->capture_default_str();
  verb->add_option("--min-count", options->min_count, "Rarer words become <unk>")
      ->check(positive)
      ->capture_default_str();
  verb->add_option("--learning-rate", options->rate, "Of AdamW, constant after the warm-up")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  verb->add_option("--warmup", options->warmup, "Steps of a linear rise of the learning rate")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verb->add_option("--dropout", options->dropout, "In [0, 1)")->capture_default_str();
  verb->add_option("--label-smoothing", options->label_smoothing, "In [0, 1)")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  verb->add_option("--d-model", options->d_model, "Width of the model")->capture_default_str();
  verb->add_option("--nhead", options->nhead, "Attention heads")->capture_default_str();
  verb->add_option("--dim-feedforward", options->dim_feedforward,
                   "Hidden units of the feed-forward layers")
      ->capture_default_str();
  verb->add_option("--layers", options->layers, "Encoder layers, and decoder layers")
      ->capture_default_str();
  verb->add_option("--max-len", options->max_len,
                   "The most words of a sentence; pairs with longer ones are left out")
      ->check(CLI::Range(int64_t{2}, int64_t{1} << 20))
      ->capture_default_str();
  verb->footer(
      "The defaults are the preset small.\nExample:\n  rapt train --source train.en --target "
      "train.de --out model --epochs 20");
  verb->callback([options, &globals, &action] {
    action = [options, &globals] { return train(*options, globals); };
  });
}

}  // namespace rapt::cli
