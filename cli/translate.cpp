// rapt translate: one line out for each line in.
#include <fmt/format.h>

#include <iostream>

#include "cli/program.h"
#include "cli/words.h"
#include "rapt/base/check.h"
#include "rapt/decode/greedy.h"
#include "rapt/text/lines.h"

namespace rapt::cli {
namespace {

struct Options {
  std::string folder;
  bool scores = false;
  int64_t max_length = 0;
  int64_t batch = 32;
};

// Lines that wait to be translated together.
struct Pending {
  std::vector<std::vector<int32_t>> sentences;
  std::vector<int64_t> numbers;
};

void flush_out() {
  std::cout.flush();
  if (!std::cout) throw Error("translate: cannot write to stdout");
}

void translate_batch(const Translator& translator, const Options& options, Pending& pending) {
  const auto results =
      decode::greedy(*translator.model, pending.sentences, {.max_length = options.max_length});
  for (const decode::Decoded& result : results) {
    if (options.scores) std::cout << fmt::format("{:.6f}\t", result.score);
    std::cout << translator.target.decode(result.ids) << '\n';
  }
  flush_out();
  pending = {};
}

int translate(const Options& options) {
  const Translator translator = load_translator(options.folder);
  const int64_t max_len = translator.model->config().max_len;
  text::LineReader reader(std::cin, "stdin");
  Pending pending;
  bool all_translated = true;
  const auto refuse = [&](const std::string& why) {
    fmt::print(stderr, "rapt: {}\n", why);
    all_translated = false;
    pending.sentences.emplace_back();  // an empty line keeps the lines aligned
  };
  for (bool more = true; more;) {
    try {
      const auto line = reader.next();
      more = line.has_value();
      if (more) {
        std::vector<int32_t> ids =
            translator.source.encode(*line, fmt::format("stdin:{}", reader.number()));
        if (static_cast<int64_t>(ids.size()) > max_len) {
          refuse(
              fmt::format("stdin:{}: {} words are more than the model's {} positions; nothing is "
                          "printed for this line",
                          reader.number(), ids.size(), max_len));
        } else {
          pending.sentences.push_back(std::move(ids));
        }
      }
    } catch (const Error& error) {  // a bad line: the others are translated all the same
      if (error.kind() != ErrorKind::data) throw;
      refuse(error.what());
    }
    if (static_cast<int64_t>(pending.sentences.size()) >= options.batch ||
        (!more && !pending.sentences.empty())) {
      translate_batch(translator, options, pending);
    }
  }
  return all_translated ? 0 : static_cast<int>(ErrorKind::data);
}

}  // namespace

void add_translate(CLI::App& app, Globals&, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb =
      app.add_subcommand("translate", "Translate standard input line by line with a trained model");
  verb->add_option("folder", options->folder, "A model folder, as train writes it")->required();
  verb->add_flag("--scores", options->scores, "Put the log-probability and a tab before each line");
  verb->add_option("--max-length", options->max_length,
                   "The most words of a translation (default: the model's positions)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 24));
  verb->add_option("--batch", options->batch,
                   "Lines to translate at once; changes no result (default 32)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  verb->footer(
      "Prints one line for each line of the input, also for empty ones. A line that cannot be "
      "translated (an unknown word,\n"
      "more words than the model has positions, bad UTF-8) is named on stderr and gives an empty "
      "line; the exit code is then 5.\n"
      "Example:\n  echo 'ein Mann schläft .' | rapt translate model");
  verb->callback([options, &action] { action = [options] { return translate(*options); }; });
}

}  // namespace rapt::cli
