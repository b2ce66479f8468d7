#include "rapt/eval/bleu.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <unordered_map>
#include <utility>

#include "rapt/base/check.h"
#include "rapt/base/names.h"
#include "rapt/base/utf8.h"
#include "rapt/text/unicode.h"

namespace rapt::eval {
namespace {

constexpr size_t kOrders = 4;
constexpr size_t kHypothesis = 0, kReference = 1, kMatches = 2, kTotals = 2 + kOrders;

constexpr NameTable<Smoothing, 4> kSmoothings = {{{Smoothing::exponential, "exp"},
                                                  {Smoothing::floor, "floor"},
                                                  {Smoothing::add_k, "add-k"},
                                                  {Smoothing::none, "none"}}};

// Words as numbers: those of the segment at hand, the hypothesis and its references.
class Words {
 public:
  std::vector<int32_t> add(std::u32string_view text) {
    std::vector<int32_t> ids;
    for (const std::u32string_view word : text::split_white_space(text)) {
      const auto next = static_cast<int32_t>(ids_.size());
      ids.push_back(ids_.emplace(word, next).first->second);
    }
    return ids;
  }

 private:
  std::unordered_map<std::u32string, int32_t> ids_;
};

// An n-gram: its words, filled up with -1, so that orders do not mix.
using Ngram = std::array<int32_t, kOrders>;
using NgramCounts = std::map<Ngram, int64_t>;

NgramCounts count_ngrams(const std::vector<int32_t>& words) {
  NgramCounts counts;
  for (size_t i = 0; i < words.size(); ++i) {
    Ngram ngram;
    ngram.fill(-1);
    for (size_t n = 0; n < kOrders && i + n < words.size(); ++n) {
      ngram[n] = words[i + n];
      ++counts[ngram];
    }
  }
  return counts;
}

size_t order_of(const Ngram& ngram) {  // from 0
  return static_cast<size_t>(
             std::count_if(ngram.begin(), ngram.end(), [](int32_t word) { return word >= 0; })) -
         1;
}

std::u32string prepare(std::string_view segment, const BleuOptions& options) {
  std::u32string line = decode_utf8(segment);
  if (options.lowercase) line = text::lower_case(line);
  while (!line.empty() && text::is_white_space(line.back())) line.pop_back();
  return tokenize(line, options.tokenizer);
}

double smoothing_value(const BleuOptions& options) {
  return options.smoothing_value.value_or(options.smoothing == Smoothing::floor ? 0.1 : 1.0);
}

double brevity_penalty(std::span<const int64_t> counts) {
  const auto hypothesis = static_cast<double>(counts[kHypothesis]);
  const auto reference = static_cast<double>(counts[kReference]);
  if (counts[kHypothesis] >= counts[kReference]) return 1;
  return counts[kHypothesis] > 0 ? std::exp(1 - reference / hypothesis) : 0;
}

struct Precisions {
  std::array<double, kOrders> of{};  // in percent
  size_t orders = kOrders;           // how many the score is the mean of
  bool any = false;                  // whether anything matches
};

Precisions precisions(std::span<const int64_t> counts, const BleuOptions& options) {
  Precisions result;
  for (size_t n = 0; n < kOrders; ++n) result.any = result.any || counts[kMatches + n] != 0;
  if (!result.any) return result;
  double halved = 1;
  for (size_t n = 0; n < kOrders; ++n) {
    auto matches = static_cast<double>(counts[kMatches + n]);
    auto total = static_cast<double>(counts[kTotals + n]);
    if (options.smoothing == Smoothing::add_k && n > 0) {
      matches += smoothing_value(options);
      total += smoothing_value(options);
    }
    if (total == 0) break;
    if (options.effective_order) result.orders = n + 1;
    if (matches != 0) {
      result.of[n] = 100 * matches / total;
    } else if (options.smoothing == Smoothing::exponential) {
      halved *= 2;
      result.of[n] = 100 / (halved * total);
    } else if (options.smoothing == Smoothing::floor) {
      result.of[n] = 100 * smoothing_value(options) / total;
    }
  }
  return result;
}

void check_counts(std::span<const int64_t> counts) {
  RAPT_CHECK(counts.size() == kTotals + kOrders, "BLEU: expected {} counts, got {}",
             kTotals + kOrders, counts.size());
}

}  // namespace

std::string_view name_of(Smoothing smoothing) { return name_in(kSmoothings, smoothing); }

Smoothing parse_smoothing(std::string_view method) {
  return value_in(kSmoothings, method, "BLEU, smoothing");
}

Bleu::Bleu(const BleuOptions& options) : options_(options) {
  const double value = smoothing_value(options);
  if (!(value > 0) || !std::isfinite(value))
    fail(ErrorKind::usage, "BLEU: expected a positive number as smoothing value, got {}", value);
}

Signature Bleu::settings() const {
  std::string smoothing(name_of(options_.smoothing));
  if (options_.smoothing == Smoothing::floor || options_.smoothing == Smoothing::add_k)
    smoothing += fmt::format("[{:.2f}]", smoothing_value(options_));
  return {{"case", options_.lowercase ? "lc" : "mixed"},
          {"eff", options_.effective_order ? "yes" : "no"},
          {"tok", std::string(name_of(options_.tokenizer))},
          {"smooth", smoothing}};
}

Counts Bleu::count(std::string_view hypothesis,
                   std::span<const std::string_view> references) const {
  RAPT_CHECK(!references.empty(), "BLEU: expected at least one reference, got none");
  Words words;
  const std::vector<int32_t> hypothesis_words = words.add(prepare(hypothesis, options_));
  const auto length = static_cast<int64_t>(hypothesis_words.size());
  NgramCounts most;  // of each n-gram in any reference
  int64_t nearest = -1;
  for (const std::string_view reference : references) {
    const std::vector<int32_t> reference_words = words.add(prepare(reference, options_));
    const auto other = static_cast<int64_t>(reference_words.size());
    const auto key = [&](int64_t l) { return std::pair(std::abs(length - l), l); };
    if (nearest < 0 || key(other) < key(nearest)) nearest = other;
    for (const auto& [ngram, count] : count_ngrams(reference_words)) {
      int64_t& so_far = most[ngram];
      so_far = std::max(so_far, count);
    }
  }
  Counts counts(kTotals + kOrders, 0);
  counts[kHypothesis] = length;
  counts[kReference] = nearest;
  for (const auto& [ngram, count] : count_ngrams(hypothesis_words)) {
    const size_t order = order_of(ngram);
    counts[kTotals + order] += count;
    const auto found = most.find(ngram);
    if (found != most.end()) counts[kMatches + order] += std::min(count, found->second);
  }
  return counts;
}

double Bleu::score(std::span<const int64_t> counts) const {
  check_counts(counts);
  const Precisions precision = precisions(counts, options_);
  if (!precision.any) return 0;
  double logs = 0;
  for (size_t n = 0; n < precision.orders; ++n) {
    if (precision.of[n] == 0) return 0;
    logs += std::log(precision.of[n]);
  }
  return brevity_penalty(counts) * std::exp(logs / static_cast<double>(precision.orders));
}

std::string Bleu::details(std::span<const int64_t> counts) const {
  check_counts(counts);
  const Precisions precision = precisions(counts, options_);
  const int64_t hypothesis = counts[kHypothesis], reference = counts[kReference];
  const double ratio =
      reference == 0 ? 0 : static_cast<double>(hypothesis) / static_cast<double>(reference);
  return fmt::format(
      "{:.1f}/{:.1f}/{:.1f}/{:.1f} (BP = {:.3f} ratio = {:.3f} hyp_len = {} ref_len = {})",
      precision.of[0], precision.of[1], precision.of[2], precision.of[3], brevity_penalty(counts),
      ratio, hypothesis, reference);
}

std::unique_ptr<Metric> Bleu::of_segments() const {
  BleuOptions options = options_;
  options.effective_order = true;
  return std::make_unique<Bleu>(options);
}

}  // namespace rapt::eval
