#include "rapt/eval/chrf.h"

#include <algorithm>
#include <unordered_map>

#include "rapt/base/check.h"
#include "rapt/base/utf8.h"
#include "rapt/text/unicode.h"

namespace rapt::eval {
namespace {

// N-grams of one order and how often each stands there, as views of the text they are from.
using NgramCounts = std::unordered_map<std::u32string_view, int64_t>;

bool is_ascii_punctuation(char32_t c) {
  return (c >= U'!' && c <= U'/') || (c >= U':' && c <= U'@') || (c >= U'[' && c <= U'`') ||
         (c >= U'{' && c <= U'~');
}

// A segment made ready: its characters without white space, and its words, a mark at one end of a
// word split off, joined by single spaces (for n-grams of words are stretches of that text).
struct Segment {
  std::u32string characters;
  std::u32string words;
  std::vector<std::pair<size_t, size_t>> word_ranges;  // begin and end in `words`

  explicit Segment(std::string_view text, const ChrfOptions& options) {
    std::u32string line = decode_utf8(text);
    if (options.lowercase) line = text::lower_case(line);
    for (const std::u32string_view word : text::split_white_space(line)) {
      characters += word;
      if (options.word_order == 0) continue;
      if (word.size() > 1 && is_ascii_punctuation(word.back())) {
        add_word(word.substr(0, word.size() - 1));
        add_word(word.substr(word.size() - 1));
      } else if (word.size() > 1 && is_ascii_punctuation(word.front())) {
        add_word(word.substr(0, 1));
        add_word(word.substr(1));
      } else {
        add_word(word);
      }
    }
  }

  NgramCounts character_ngrams(size_t n) const {
    NgramCounts counts;
    const std::u32string_view all = characters;
    for (size_t i = 0; i + n <= all.size(); ++i) ++counts[all.substr(i, n)];
    return counts;
  }

  NgramCounts word_ngrams(size_t n) const {
    NgramCounts counts;
    const std::u32string_view all = words;
    for (size_t i = 0; i + n <= word_ranges.size(); ++i) {
      const size_t begin = word_ranges[i].first, end = word_ranges[i + n - 1].second;
      ++counts[all.substr(begin, end - begin)];
    }
    return counts;
  }

 private:
  void add_word(std::u32string_view word) {
    if (!words.empty()) words += U' ';
    word_ranges.emplace_back(words.size(), words.size() + word.size());
    words += word;
  }
};

void append_matches(Counts& counts, const NgramCounts& hypothesis, const NgramCounts& reference) {
  int64_t in_hypothesis = 0, in_reference = 0, shared = 0;
  for (const auto& [ngram, count] : reference) in_reference += count;
  for (const auto& [ngram, count] : hypothesis) {
    in_hypothesis += count;
    const auto found = reference.find(ngram);
    if (found != reference.end()) shared += std::min(count, found->second);
  }
  counts.insert(counts.end(), {reference.empty() ? 0 : in_hypothesis, in_reference, shared});
}

Counts compare(const Segment& hypothesis, const Segment& reference, const ChrfOptions& options) {
  Counts counts;
  for (size_t n = 1; std::cmp_less_equal(n, options.char_order); ++n)
    append_matches(counts, hypothesis.character_ngrams(n), reference.character_ngrams(n));
  for (size_t n = 1; std::cmp_less_equal(n, options.word_order); ++n)
    append_matches(counts, hypothesis.word_ngrams(n), reference.word_ngrams(n));
  return counts;
}

}  // namespace

Chrf::Chrf(const ChrfOptions& options) : options_(options) {
  const auto in_range = [](int order) { return order >= 0 && order <= 100; };
  if (!in_range(options.char_order) || !in_range(options.word_order) ||
      options.char_order + options.word_order == 0 || options.beta < 1 || options.beta > 1000) {
    fail(ErrorKind::usage,
         "chrF: expected orders from 0 to 100, one of them above 0, and beta from 1 to 1000, got "
         "{} for characters, {} for words, beta {}",
         options.char_order, options.word_order, options.beta);
  }
}

std::string Chrf::name() const {
  return fmt::format("chrF{}{}", options_.beta,
                     std::string(static_cast<size_t>(options_.word_order), '+'));
}

Signature Chrf::settings() const {
  return {{"case", options_.lowercase ? "lc" : "mixed"},
          {"eff", "yes"},
          {"nc", fmt::format("{}", options_.char_order)},
          {"nw", fmt::format("{}", options_.word_order)},
          {"space", "no"}};
}

Counts Chrf::count(std::string_view hypothesis,
                   std::span<const std::string_view> references) const {
  RAPT_CHECK(!references.empty(), "chrF: expected at least one reference, got none");
  const Segment segment(hypothesis, options_);
  Counts best;
  double best_score = -1;
  for (const std::string_view reference : references) {
    Counts counts = compare(segment, Segment(reference, options_), options_);
    const double value = score(counts);
    if (value > best_score) {
      best_score = value;
      best = std::move(counts);
    }
  }
  return best;
}

double Chrf::score(std::span<const int64_t> counts) const {
  const size_t orders =
      static_cast<size_t>(options_.char_order) + static_cast<size_t>(options_.word_order);
  RAPT_CHECK(counts.size() == 3 * orders, "chrF: expected {} counts, got {}", 3 * orders,
             counts.size());
  double precision = 0, recall = 0;
  int there = 0;  // orders that both sides are long enough for
  for (size_t i = 0; i < counts.size(); i += 3) {
    const auto hypothesis = static_cast<double>(counts[i]);
    const auto reference = static_cast<double>(counts[i + 1]);
    if (hypothesis == 0 || reference == 0) continue;
    precision += static_cast<double>(counts[i + 2]) / hypothesis;
    recall += static_cast<double>(counts[i + 2]) / reference;
    ++there;
  }
  if (precision + recall == 0) return 0;
  precision /= there;
  recall /= there;
  const double factor = options_.beta * options_.beta;
  return 100 * (1 + factor) * precision * recall / (factor * precision + recall);
}

std::string Chrf::details(std::span<const int64_t>) const { return ""; }

std::unique_ptr<Metric> Chrf::of_segments() const { return std::make_unique<Chrf>(options_); }

}  // namespace rapt::eval
