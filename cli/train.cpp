// rapt train: a translator from two aligned text files.
#include "rapt/train/seq2seq.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/flags.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/program.h"
#include "cli/progress.h"
#include "rapt/base/check.h"
#include "rapt/base/limits.h"
#include "rapt/train/recipe.h"

namespace rapt::cli {
namespace {

struct Options {
  data::PairFiles files;
  std::string out, columns = "1,2";
  int64_t subwords = 0;  // pieces of a joint model learnt from the text; 0: words
  std::string source_tokenizer, target_tokenizer;
  std::string invalid_utf8 = "strict";
  train::Recipe recipe = train::small_recipe();
  int64_t layers = recipe.model.num_encoder_layers;
  double dropout = recipe.model.dropout;
  std::string dtype = "f32";
};

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

data::PairCorpus read_corpus(const Options& options, data::PairVocabularies& words) {
  const text::LineOptions lines{.invalid = options.invalid_utf8 == "replace"
                                               ? text::InvalidUtf8::replace
                                               : text::InvalidUtf8::refuse};
  require_files(options.files);
  words = make_vocabularies(options, lines, options.recipe.fit.seed);
  return data::read_pairs(options.files, words.source, words.target, options.recipe.pairs(lines));
}

void describe(const data::PairCorpus& corpus, const data::PairVocabularies& words,
              const Globals& globals) {
  say(globals,
      fmt::format("{} pairs ({} with an empty side and {} too long left out), "
                  "vocabularies of {} and {} entries",
                  corpus.size(), corpus.empty_pairs, corpus.too_long_pairs, words.source.size(),
                  words.target.size()),
      {{"pairs", corpus.size()},
       {"empty_pairs", corpus.empty_pairs},
       {"too_long_pairs", corpus.too_long_pairs},
       {"source_vocabulary", words.source.size()},
       {"target_vocabulary", words.target.size()}});
  if (corpus.replaced > 0)
    say(globals, fmt::format("{} invalid UTF-8 sequences became U+FFFD", corpus.replaced),
        {{"replaced", corpus.replaced}});
}

int train(Options options, const Globals& globals) {
  check_choices(options);
  train::Recipe& recipe = options.recipe;
  recipe.model.num_encoder_layers = recipe.model.num_decoder_layers = options.layers;
  recipe.model.dropout = recipe.model.position_dropout = options.dropout;
  recipe.fit.seed = globals.seed;
  if (options.dtype == "bf16") recipe.fit.compute_type = DType::bf16;
  recipe.check();
  decode::check_model_folder(options.out);
  data::PairVocabularies words;
  const data::PairCorpus corpus = read_corpus(options, words);
  describe(corpus, words, globals);
  const decode::Translator translator = train::make_translator(recipe, std::move(words));
  if (recipe.fit.batches.tokens == 0) recipe.fit.batches.tokens = train::batch_tokens(corpus);
  const int64_t parameters = nn::count_parameters(*translator.model);
  say(globals,
      fmt::format("{} parameters, steps of at most {} tokens", parameters,
                  recipe.fit.batches.tokens),
      {{"parameters", parameters}, {"batch_tokens", recipe.fit.batches.tokens}});
  const Interrupt interrupt;
  recipe.fit.stop = [&] { return interrupt.signal() != 0; };
  {
    ProgressPrinter printer(globals);
    train::learn(translator, corpus, recipe,
                 [&](const train::Progress& progress) { printer.report(progress); });
  }
  const int stopped_by = interrupt.signal();
  decode::save_translator(translator, options.out);
  say(globals, fmt::format("{}wrote {}", stopped_by == 0 ? "" : "stopped early; ", options.out),
      {{"folder", options.out}, {"stopped_early", stopped_by != 0}});
  return stopped_by == 0 ? 0 : 128 + stopped_by;
}

void add_model_flags(CLI::App& verb, Options& options) {
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
  verb.add_option("--dropout", options.dropout,
                  "Share of the elements that are dropped in training, in [0, 1)")
      ->type_name("P")
      ->check(fraction())
      ->capture_default_str();
}

void add_learning_flags(CLI::App& verb, Options& options) {
  train::Recipe& recipe = options.recipe;
  const auto count = [&](const char* name, int64_t& value, int64_t low, const char* help) {
    verb.add_option(name, value, help)
        ->type_name("N")
        ->check(whole(low, int64_t{1} << 40))
        ->capture_default_str();
  };
  count("--epochs", recipe.fit.epochs, 1, "Passes over the pairs");
  verb.add_option("--batch-tokens", recipe.fit.batches.tokens,
                  "Tokens of a step at most, source and target together (default: an eighth of the "
                  "corpus, but no more than 4096)")
      ->type_name("N")
      ->check(whole(1, int64_t{1} << 40));
  count("--min-count", recipe.words.min_count, 1, "Rarer words become <unk>");
  count("--warmup", recipe.schedule.warmup, 0, "Steps of a linear rise of the learning rate");
  verb.add_option("--learning-rate", recipe.schedule.rate, "Of AdamW, constant after the warm-up")
      ->type_name("RATE")
      ->check(number_above_zero())
      ->capture_default_str();
  verb.add_option("--dtype", options.dtype,
                  "What is computed in: f32, or bf16 with parameters of f32, faster on CPUs that "
                  "multiply it")
      ->type_name("TYPE")
      ->check(one_of({"f32", "bf16"}))
      ->capture_default_str();
  verb.add_option("--label-smoothing", recipe.fit.label_smoothing,
                  "Share of the probability that is spread over all words, in [0, 1)")
      ->type_name("P")
      ->check(fraction())
      ->capture_default_str();
}

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
}

}  // namespace

void add_train(CLI::App& app, Globals& globals, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand(
      "train", "Train a translator from two aligned text files, words or subwords as tokens");
  add_text_flags(*verb, *options);
  verb->add_option("--out", options->out,
                   "The model folder to write; an old model is replaced at the end")
      ->type_name("DIR")
      ->required();
  verb->add_option("--invalid-utf8", options->invalid_utf8,
                   "strict: an error; replace: U+FFFD, counted")
      ->type_name("RULE")
      ->check(one_of({"strict", "replace"}))
      ->capture_default_str();
  add_learning_flags(*verb, *options);
  add_model_flags(*verb, *options);
  verb->footer(
      "The defaults are the preset small. Words are what stands between spaces and tabs.\n"
      "Text packed by gzip is read unpacked.\n"
      "SIGINT and SIGTERM stop after the step; the model as it is then is written.\n"
      "Example:\n  rapt train --source train.en --target train.de --out model --epochs 20");
  verb->callback([options, &globals, &action] {
    action = [options, &globals] { return train(*options, globals); };
  });
}

}  // namespace rapt::cli
