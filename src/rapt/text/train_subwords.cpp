#include "rapt/text/train_subwords.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <exception>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>

#include "rapt/base/check.h"
#include "rapt/base/utf8.h"
#include "rapt/text/words.h"

namespace rapt::text {
namespace {

constexpr const char* kThreads = "4";  // a fixed number: how sums are split decides their last bits
constexpr std::array<std::string_view, 5> kRules = {"nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf",
                                                    "identity"};

// Our lines as the library wants them. What reading throws is kept for afterwards: the library is
// not made for exceptions.
class Lines : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(const LineSource& lines) : lines_(lines) { Next(); }
  bool done() const override { return done_; }
  const std::string& value() const override { return line_; }
  sentencepiece::util::Status status() const override { return {}; }

  void Next() override {
    try {
      const auto line = lines_();
      done_ = !line;
      if (line) line_ = *line;
      any_ = any_ || (line && !split_words(*line).empty());
    } catch (...) {
      error_ = std::current_exception();
      done_ = true;
    }
  }

  bool any() const { return any_; }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  const LineSource& lines_;
  std::string line_;
  bool done_ = false, any_ = false;
  std::exception_ptr error_;
};

void check(const SubwordTraining& options) {
  const auto refuse = [](const std::string& what) {
    fail(ErrorKind::usage, "tokenizer: {}", what);
  };
  // The library keeps counts in 32 bits.
  if (options.vocabulary < 1 || options.vocabulary > 1'000'000)
    refuse(
        fmt::format("expected a vocabulary of 1 to 1,000,000 entries, got {}", options.vocabulary));
  if (!(options.character_coverage >= 0.98 && options.character_coverage <= 1))
    refuse(fmt::format("expected a character coverage from 0.98 to 1, got {}",
                       options.character_coverage));
  if (std::find(kRules.begin(), kRules.end(), options.normalisation) == kRules.end())
    refuse(fmt::format("expected normalisation by {}, got {}", fmt::join(kRules, ", "),
                       options.normalisation));
  std::set<std::string_view> seen(kSpecialWords.begin(), kSpecialWords.end());
  for (const std::string& symbol : options.user_symbols) {
    if (symbol.empty() || first_invalid_utf8(symbol) ||
        symbol.find_first_of("\n\t") != std::string::npos || symbol.find('\0') != std::string::npos)
      refuse(fmt::format("expected user symbols of UTF-8 without tabs and line feeds, got {}",
                         quote_word(symbol)));
    if (!seen.insert(symbol).second)
      refuse(fmt::format("the symbol {} stands twice, or is a special one", quote_word(symbol)));
  }
}

// A list for the library: quotes around each, doubled inside.
std::string quoted(const std::vector<std::string>& symbols) {
  std::string list;
  for (const std::string& symbol : symbols) {
    list += list.empty() ? "\"" : ",\"";
    for (const char c : symbol) list += c == '"' ? std::string("\"\"") : std::string(1, c);
    list += '"';
  }
  return list;
}

std::unordered_map<std::string, std::string> arguments(const SubwordTraining& options) {
  std::unordered_map<std::string, std::string> all = {
      {"vocab_size", fmt::format("{}", options.vocabulary)},
      {"model_type", std::string(name_of(options.model))},
      {"character_coverage", fmt::format("{}", options.character_coverage)},
      {"byte_fallback", options.byte_fallback ? "true" : "false"},
      {"normalization_rule_name", options.normalisation},
      {"pad_id", "0"},
      {"bos_id", "1"},
      {"eos_id", "2"},
      {"unk_id", "3"},
      {"hard_vocab_limit", "false"},
      {"max_sentence_length", "1000000"},
      {"num_threads", kThreads},
      {"minloglevel", "3"},
  };
  if (!options.user_symbols.empty()) all["user_defined_symbols"] = quoted(options.user_symbols);
  return all;
}

// How many entries the library asks for where it says "smaller than required_chars. 5 vs 47."; else
// 0.
int64_t least_vocabulary(std::string_view why) {
  const std::string_view before = " vs ";
  const size_t at = why.find(before);
  if (at == std::string_view::npos || why.find("required_chars") == std::string_view::npos)
    return 0;
  int64_t least = 0;
  std::from_chars(why.data() + at + before.size(), why.data() + why.size(), least);
  return least;
}

}  // namespace

Subwords train_subwords(const LineSource& lines, const SubwordTraining& options) {
  check(options);
  static std::mutex one_at_a_time;  // the library's generator is one for the process
  const std::lock_guard lock(one_at_a_time);
  Lines iterator(lines);
  while (!iterator.done() && !iterator.any()) iterator.Next();
  iterator.rethrow();
  if (!iterator.any())
    fail(ErrorKind::data, "tokenizer: expected text to learn from, got no line with a word");
  sentencepiece::SetRandomGeneratorSeed(static_cast<uint32_t>(options.seed));
  std::string bytes;
  const auto status =
      sentencepiece::SentencePieceTrainer::Train(arguments(options), &iterator, &bytes);
  iterator.rethrow();
  if (!status.ok()) {
    // "FILE(LINE) [CONDITION] what is wrong": what is wrong.
    std::string_view why = status.message();
    if (const size_t at = why.find("] "); at != std::string_view::npos) why.remove_prefix(at + 2);
    if (const int64_t least = least_vocabulary(why); least > 0)
      fail(ErrorKind::config,
           "tokenizer: expected a vocabulary of at least {} entries, for the characters of this "
           "text, "
           "got {}; or a lower character coverage",
           least, options.vocabulary);
    fail(ErrorKind::config,
         "tokenizer: no {} model of {} entries can be learnt from this text, try another size or a "
         "lower character coverage: {}",
         name_of(options.model), options.vocabulary, why);
  }
  return Subwords::parse(std::move(bytes), "the model that was learnt");
}

}  // namespace rapt::text
