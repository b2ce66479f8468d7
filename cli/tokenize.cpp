// rapt tokenize: subword models learnt, text cut into pieces, pieces joined to text.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/flags.h"
#include "cli/input.h"
#include "cli/output.h"
#include "cli/program.h"
#include "rapt/base/check.h"
#include "rapt/base/file.h"
#include "rapt/text/subwords.h"
#include "rapt/text/train_subwords.h"
#include "rapt/text/words.h"

namespace rapt::cli {
namespace {

struct TrainOptions {
  std::vector<std::string> inputs;
  std::string out, type = "unigram";
  std::string invalid_utf8 = "strict";
  text::SubwordTraining training;
};

struct ApplyOptions {
  std::string model;
  std::string invalid_utf8 = "strict";
  bool ids = false;
};

int train(TrainOptions options, const Globals& globals) {
  options.training.seed = globals.seed;
  options.training.model = text::parse_subword_model(options.type);
  size_t next = 0;
  std::unique_ptr<text::LineReader> reader;
  int64_t lines = 0;
  const auto line = [&]() -> std::optional<std::string_view> {
    for (;;) {
      if (reader) {
        if (const auto found = reader->next()) {
          ++lines;
          return found;
        }
      }
      if (next == options.inputs.size()) return std::nullopt;
      reader = std::make_unique<text::LineReader>(std::filesystem::path(options.inputs[next++]),
                                                  line_options(options.invalid_utf8));
    }
  };
  const text::Subwords model = text::train_subwords(line, options.training);
  write_file(options.out, model.bytes());
  say(globals, fmt::format("wrote {}: {} pieces from {} lines", options.out, model.size(), lines),
      {{"file", options.out}, {"pieces", model.size()}, {"lines", lines}});
  return 0;
}

// A result of one line, whatever is in it.
void print_line(std::string line) {
  std::replace(line.begin(), line.end(), '\n', ' ');
  print(line + "\n");
  flush_results();
}

// Calls `each` with every line of standard input.
void for_each_line(const ApplyOptions& options,
                   const std::function<void(std::string_view, const std::string&)>& each) {
  text::LineReader reader(std::cin, "stdin", line_options(options.invalid_utf8));
  while (const auto line = reader.next()) each(*line, fmt::format("stdin:{}", reader.number()));
  check_stdin(reader);
}

int encode(const ApplyOptions& options) {
  const text::Subwords model = text::Subwords::read(options.model);
  for_each_line(options, [&](std::string_view line, const std::string&) {
    std::string out;
    for (const text::Subword& subword : model.cut(line)) {
      if (!out.empty()) out += ' ';
      out += options.ids ? fmt::format("{}", subword.id) : subword.piece;
    }
    print_line(std::move(out));
  });
  return 0;
}

int32_t parse_id(std::string_view word, int64_t size, const std::string& where) {
  int32_t id = -1;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
  if (error != std::errc() || end != word.data() + word.size() || id < 0 || id >= size)
    fail(ErrorKind::data, "{}: expected ids from 0 to {}, got {}", where, size - 1,
         text::quote_word(word));
  return id;
}

int decode(const ApplyOptions& options) {
  const text::Subwords model = text::Subwords::read(options.model);
  for_each_line(options, [&](std::string_view line, const std::string& where) {
    const std::vector<std::string_view> words = text::split_words(line);
    if (!options.ids) return print_line(model.decode_pieces(words));
    std::vector<int32_t> ids;
    ids.reserve(words.size());
    for (const std::string_view word : words) ids.push_back(parse_id(word, model.size(), where));
    print_line(model.decode(ids));
  });
  return 0;
}

void add_train_flags(CLI::App& verb, TrainOptions& options) {
  verb.add_option("--input", options.inputs, "Text, a sentence a line; may be given several times")
      ->type_name("FILE")
      ->take_all()
      ->required();
  verb.add_option("--out", options.out, "The .model file to write")->type_name("FILE")->required();
  verb.add_option("--vocab-size", options.training.vocabulary,
                  "Pieces at most, the four special ones included")
      ->type_name("N")
      ->check(whole(1, 1'000'000))
      ->capture_default_str();
  verb.add_option("--model-type", options.type, "unigram, bpe, word or char")
      ->type_name("TYPE")
      ->check(one_of({"unigram", "bpe", "word", "char"}))
      ->capture_default_str();
  verb.add_option("--character-coverage", options.training.character_coverage,
                  "Share of the characters that get pieces, the rarest left out: 0.9995 suits "
                  "Chinese and Japanese")
      ->type_name("P")
      ->capture_default_str();
  verb.add_option("--user-symbols", options.training.user_symbols,
                  "Symbols that are never cut, with commas between")
      ->type_name("LIST")
      ->delimiter(',')
      ->take_all();
  verb.add_flag("--byte-fallback", options.training.byte_fallback,
                "Pieces for all bytes, so that no character is unknown");
  verb.add_option("--normalization", options.training.normalisation,
                  "nmt_nfkc, nfkc, nmt_nfkc_cf, nfkc_cf (lower case) or identity")
      ->type_name("RULE")
      ->check(one_of({"nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"}))
      ->capture_default_str();
  add_invalid_utf8(verb, options.invalid_utf8);
}

}  // namespace

void add_tokenize(CLI::App& app, Globals& globals, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "tokenize", "Subwords: learn a SentencePiece model, cut text with one, join pieces again");
  verb->require_subcommand(1);
  verb->footer(
      "Example:\n  rapt tokenize train --input train.en --input train.de --out joint.model "
      "--vocab-size 8000\n  rapt tokenize encode joint.model < test.en | rapt tokenize decode "
      "joint.model");

  auto training = std::make_shared<TrainOptions>();
  CLI::App* train_verb = verb->add_subcommand("train", "Learn a model from text");
  add_train_flags(*train_verb, *training);
  train_verb->callback([training, &globals, &action] {
    action = [training, &globals] { return train(*training, globals); };
  });

  const auto add_apply = [&](const char* name, const char* help, int (*apply)(const ApplyOptions&),
                             const char* ids) {
    auto options = std::make_shared<ApplyOptions>();
    CLI::App* part = verb->add_subcommand(name, help);
    part->add_option("model", options->model, "A SentencePiece .model file")
        ->type_name("MODEL")
        ->required();
    part->add_flag("--ids", options->ids, ids);
    add_invalid_utf8(*part, options->invalid_utf8);
    part->callback(
        [options, apply, &action] { action = [options, apply] { return apply(*options); }; });
  };
  add_apply("encode", "One line of pieces for each line of standard input", encode,
            "Print ids instead of pieces");
  add_apply("decode", "One line of text for each line of pieces on standard input", decode,
            "Read ids instead of pieces");
}

}  // namespace rapt::cli
