// rapt translate: one line out for each line in.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "cli/flags.h"
#include "cli/input.h"
#include "cli/output.h"
#include "cli/program.h"
#include "rapt/base/check.h"
#include "rapt/decode/translate.h"
#include "rapt/show/heat_map.h"

namespace rapt::cli {
namespace {

// The flags of sampling, set where they were given.
struct Sampling {
  bool asked = false;
  std::optional<double> temperature, top_p, repetition_penalty;
  std::optional<int64_t> top_k;
};

struct Options {
  std::string folder;
  std::string prefixes;
  std::string alignments;
  std::string attention;
  std::string dtype;
  std::string invalid_utf8 = "strict";
  bool scores = false;
  decode::BeamOptions beam{.beam = 1};
  Sampling sampling;
  decode::TranslateOptions translate;
};

// Pictures of the last layer's cross-attention: FILE for one line of input, FILE with -1, -2 and on
// before its ending for more.
class Pictures {
 public:
  Pictures(const decode::Translator& translator, std::filesystem::path path)
      : translator_(translator), path_(std::move(path)) {}

  void add(const decode::Translation& translation) {
    if (++lines_ == 1) {  // which name it gets is known when there is another line
      first_ = translation;
      return;
    }
    if (lines_ == 2) draw(first_, numbered(first_.line));
    draw(translation, numbered(translation.line));
  }

  void finish() const {
    if (lines_ == 1) draw(first_, path_);
  }

 private:
  std::filesystem::path numbered(int64_t line) const {
    std::filesystem::path path = path_;
    return path.replace_filename(
        fmt::format("{}-{}{}", path_.stem().string(), line, path_.extension().string()));
  }

  void draw(const decode::Translation& translation, const std::filesystem::path& path) const {
    if (translation.source.empty()) return;  // nothing was looked at
    const std::vector<int32_t> read = decode::decoder_input(translator_, translation.decoded.ids);
    const std::vector<Tensor> layers =
        decode::attentions_of(translator_, translation.source, read).cross;
    if (layers.empty()) fail(ErrorKind::usage, "--attention: the model has no decoder layers");
    const auto maps = show::head_maps(layers.back(), 0, decode::spellings(translator_.target, read),
                                      decode::spellings(translator_.source, translation.source));
    const show::HeatMapOptions options{
        .title = fmt::format("Cross-attention, layer {}", layers.size() - 1),
        .row_axis = "target",
        .col_axis = "source"};
    path.extension() == ".svg" ? show::write_svg(path, maps, options)
                               : show::write_png(path, maps, options);
  }

  const decode::Translator& translator_;
  std::filesystem::path path_;
  int64_t lines_ = 0;
  decode::Translation first_;
};

// The file of --alignments: a line for each line, written as soon as it is known.
class AlignmentFile {
 public:
  explicit AlignmentFile(const std::string& path) : path_(path), file_(path, std::ios::binary) {
    check();
  }

  void add(const decode::Translation& translation) {
    file_ << decode::pharaoh(translation.alignment) << std::endl;
    check();
  }

 private:
  void check() const {
    if (!file_)
      fail(ErrorKind::failure, "--alignments: cannot write {}: {}", path_,
           std::generic_category().message(errno));
  }

  std::string path_;
  std::ofstream file_;
};

// What one line became. Lists of the n best have the form of Marian and Moses, which number lines
// from 0.
void print_translation(const decode::Translation& translation, const Options& options) {
  if (options.beam.n_best == 1) {
    if (options.scores) print(fmt::format("{:.6f}\t", translation.decoded.score));
    return print(translation.text + "\n");
  }
  for (const decode::Alternative& one : translation.n_best) {
    print(fmt::format("{} ||| {} ||| ", translation.line - 1, one.text));
    if (options.scores) print(fmt::format("{:.6f} ||| ", one.hypothesis.log_probability));
    print(fmt::format("{:.6f}\n", one.hypothesis.score));
  }
}

// Said before anything is translated.
void check_folder(const std::filesystem::path& picture) {
  const std::filesystem::path folder = picture.parent_path();
  std::error_code ignored;
  if (!folder.empty() && !std::filesystem::is_directory(folder, ignored))
    fail(ErrorKind::failure, "--attention: cannot write {}: there is no folder {}",
         picture.string(), folder.string());
}

void check(const Options& options) {
  const std::string ending = std::filesystem::path(options.attention).extension();
  if (!options.attention.empty() && ending != ".png" && ending != ".svg")
    fail(ErrorKind::usage, "--attention: expected a file that ends in .png or .svg, got {}",
         options.attention);
  check_folder(options.attention);
  if (options.beam.n_best > options.beam.beam)
    fail(ErrorKind::usage, "--n-best: expected at most {} (the beam), got {}; raise --beam",
         options.beam.beam, options.beam.n_best);
  const bool searches = options.beam.beam > 1;
  if (options.beam.coverage_penalty > 0 && !searches)
    fail(ErrorKind::usage, "--coverage-penalty: expected --beam of at least 2, got {}",
         options.beam.beam);
  if (options.sampling.asked && searches)
    fail(ErrorKind::usage, "--sample: expected --beam of 1, got {}; a draw follows one hypothesis",
         options.beam.beam);
  const Sampling& sampling = options.sampling;
  for (const auto& [flag, given] :
       {std::pair("--temperature", sampling.temperature.has_value()),
        std::pair("--top-k", sampling.top_k.has_value()),
        std::pair("--top-p", sampling.top_p.has_value()),
        std::pair("--repetition-penalty", sampling.repetition_penalty.has_value())}) {
    if (given && !sampling.asked)
      fail(ErrorKind::usage, "{}: expected --sample beside it, since it says how to draw", flag);
  }
}

// How to decode, with the limits that all ways share.
decode::TranslateOptions decoding(const Options& options, const Globals& globals) {
  decode::TranslateOptions how = options.translate;
  const decode::GreedyOptions& limits = how.greedy;
  const auto limited = [&](auto one) {
    one.max_length = limits.max_length;
    one.max_length_ratio = limits.max_length_ratio;
    one.max_length_extra = limits.max_length_extra;
    return one;
  };
  if (options.beam.beam > 1) how.beam = limited(options.beam);  // one of 1 is greedy
  if (options.sampling.asked) {
    const decode::SampleOptions plain;
    how.sample = limited(decode::SampleOptions{
        .repetition_penalty =
            options.sampling.repetition_penalty.value_or(plain.repetition_penalty),
        .temperature = options.sampling.temperature.value_or(plain.temperature),
        .top_k = options.sampling.top_k.value_or(plain.top_k),
        .top_p = options.sampling.top_p.value_or(plain.top_p),
        .seed = globals.seed});
  }
  how.alignments = !options.alignments.empty();
  return how;
}

decode::Weights weights_of(const std::string& dtype) {
  if (dtype.empty()) return decode::Weights::stored;
  if (dtype == "bf16") return decode::Weights::bf16;
  return dtype == "int8" ? decode::Weights::int8 : decode::Weights::f32;
}

int translate(const Options& options, const Globals& globals) {
  check(options);
  decode::TranslateOptions how = decoding(options, globals);
  const decode::Translator translator =
      decode::load_translator(options.folder, weights_of(options.dtype));
  StandardInput input;
  text::LineReader reader(input.stream(), "stdin", line_options(options.invalid_utf8));
  how.ready = [&] { return input.ready(); };
  std::optional<text::LineReader> prefixes;
  if (!options.prefixes.empty())
    how.prefixes = &prefixes.emplace(options.prefixes, line_options(options.invalid_utf8));
  std::optional<AlignmentFile> alignments;
  if (how.alignments) alignments.emplace(options.alignments);
  Pictures pictures(translator, options.attention);
  const std::optional<int32_t> unk = translator.source.special().unk;
  int64_t refused = 0, cut = 0, unknown = 0, tokens = 0;
  decode::translate_lines(translator, reader, how, [&](const decode::Translation& translation) {
    if (!translation.refused.empty()) {
      log(globals, Level::warning, translation.refused, {{"line", translation.line}});
      ++refused;
    }
    if (!translation.decoded.ended) ++cut;
    const std::vector<int32_t>& source = translation.source;
    tokens += static_cast<int64_t>(source.size());
    if (unk) unknown += std::count(source.begin(), source.end(), *unk);
    print_translation(translation, options);
    flush_results();
    if (alignments) alignments->add(translation);
    if (!options.attention.empty()) pictures.add(translation);
  });
  pictures.finish();
  if (reader.replaced() > 0)
    say(globals, fmt::format("{} invalid UTF-8 sequences became U+FFFD", reader.replaced()),
        {{"replaced", reader.replaced()}});
  if (unknown > 0)
    say(globals,
        fmt::format("{} of {} {} are unknown to the model; is the text cut into words and cased as "
                    "what it learned from?",
                    unknown, tokens, translator.source.unit()),
        {{"unknown", unknown}, {"tokens", tokens}});
  if (cut > 0) note(globals, fmt::format("{} translations stopped at their length limit", cut));
  if (refused > 0)
    say(globals,
        fmt::format("{} of {} lines were not translated; their lines are empty", refused,
                    reader.number()),
        {{"refused", refused}, {"lines", reader.number()}});
  return refused == 0 ? 0 : static_cast<int>(ErrorKind::data);
}

void add_search(CLI::App& verb, Options& options) {
  verb.add_option("--beam", options.beam.beam,
                  "Hypotheses of a line that are followed side by side; 1: the best word at each "
                  "step (greedy)")
      ->type_name("N")
      ->check(whole(1, 1024))
      ->capture_default_str();
  verb.add_option(
          "--n-best", options.beam.n_best,
          "Print the N best of a line's beam as \"number ||| translation ||| score\", lines "
          "numbered from 0")
      ->type_name("N")
      ->check(whole(1, 1024))
      ->capture_default_str();
  verb.add_option(
          "--length-penalty", options.beam.length_penalty,
          "Score of a beam's hypothesis: log-probability / tokens^A, the end counted; 0: the "
          "log-probability")
      ->type_name("A")
      ->check(exponent())
      ->capture_default_str();
  verb.add_option("--coverage-penalty", options.beam.coverage_penalty,
                  "Adds to it B times the sum over the line's tokens of log(min(attention it got, "
                  "1)), which falls where parts are left out")
      ->type_name("B")
      ->check(between(0, 10))
      ->capture_default_str();
}

void add_sampling(CLI::App& verb, Sampling& sampling) {
  verb.add_flag(
      "--sample", sampling.asked,
      "Draw each token by its probability; --seed, the line's number and the step decide");
  verb.add_option(
          "--temperature", sampling.temperature,
          "Of --sample: divides the logits; below 1 sharper, 0: the best token (default: 1)")
      ->type_name("T")
      ->check(number_from_zero());
  verb.add_option("--top-k", sampling.top_k,
                  "Of --sample: draw from the K best tokens (default: 0, from all)")
      ->type_name("K")
      ->check(whole(0));
  verb.add_option("--top-p", sampling.top_p,
                  "Of --sample: draw from the best tokens that have together this probability "
                  "(default: 1)")
      ->type_name("P")
      ->check(between(0, 1));
  verb.add_option("--repetition-penalty", sampling.repetition_penalty,
                  "Of --sample: makes tokens that are there already less likely where above 1 "
                  "(default: 1)")
      ->type_name("R")
      ->check(number_above_zero());
}

void add_limits(CLI::App& verb, decode::GreedyOptions& limits) {
  verb.add_option("--max-length", limits.max_length,
                  "The most tokens of a translation (default: the model's positions)")
      ->type_name("N")
      ->check(whole(1, int64_t{1} << 40));
  verb.add_option("--max-length-ratio", limits.max_length_ratio,
                  "A translation also ends after R tokens for each of the line and "
                  "--max-length-extra more; 0: only --max-length bounds it")
      ->type_name("R")
      ->check(between(0, decode::kMostLengthRatio))
      ->capture_default_str();
  verb.add_option("--max-length-extra", limits.max_length_extra,
                  "Tokens that --max-length-ratio allows beside its own")
      ->type_name("N")
      ->check(whole(0, decode::kMostLengthExtra))
      ->capture_default_str();
}

void add_results(CLI::App& verb, Options& options) {
  verb.add_flag(
      "--scores", options.scores,
      "Put the log-probability and a tab before each line, with --n-best as a field before "
      "the score");
  verb.add_option(
          "--alignments", options.alignments,
          "Write which words of each line belong to which of its translation, as \"0-0 1-2\", "
          "a line each: what attention looked at most")
      ->type_name("FILE");
  verb.add_option("--attention", options.attention,
                  "Draw the last layer's cross-attention of each line: a .png or .svg, with the "
                  "line's number before the ending where there are several lines")
      ->type_name("FILE");
}

void add_input(CLI::App& verb, Options& options) {
  verb.add_option("--prefix", options.prefixes,
                  "What the translations must begin with, a line for each line; a blank one leaves "
                  "it free")
      ->type_name("FILE");
  verb.add_option("--batch", options.translate.batch,
                  "Lines to translate at once, of those that lie ready sorted by length; changes "
                  "no result")
      ->type_name("N")
      ->check(whole(1, decode::kMostLinesOfBatch))
      ->capture_default_str();
  add_invalid_utf8(verb, options.invalid_utf8,
                   "strict: the line is refused; replace: U+FFFD, counted");
}

}  // namespace

void add_translate(CLI::App& app, Globals& globals, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb =
      app.add_subcommand("translate", "Translate standard input line by line with a trained model");
  verb->add_option("folder", options->folder, "A model folder, as train writes it")
      ->type_name("DIR")
      ->required();
  add_search(*verb, *options);
  add_sampling(*verb, options->sampling);
  add_limits(*verb, options->translate.greedy);
  add_results(*verb, *options);
  add_input(*verb, *options);
  verb->add_option(
          "--dtype", options->dtype,
          "What is computed in: f32, bf16, or int8, quantised as the model is read (default: "
          "what the folder holds)")
      ->type_name("TYPE")
      ->check(one_of({"f32", "bf16", "int8"}));
  verb->footer(
      "Prints one line for each line of standard input, also for empty ones. A line that cannot be "
      "translated (an unknown word,\n"
      "more words than the model has positions, bad UTF-8) is named on stderr and gives an empty "
      "line; the exit code is then 5.\n"
      "With --n-best above 1 a line gives up to N lines, the best first, all different.\n"
      "Example:\n  echo 'ein Mann schläft .' | rapt translate model --beam 5");
  verb->callback([options, &globals, &action] {
    action = [options, &globals] { return translate(*options, globals); };
  });
}

}  // namespace rapt::cli
