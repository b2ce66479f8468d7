// BLEU (Papineni et al. 2002, "BLEU: a method for automatic evaluation of machine translation"),
// with sacreBLEU's numbers (Post 2018, "A call for clarity in reporting BLEU scores").
#pragma once

#include <optional>

#include "rapt/eval/bleu_tokens.h"
#include "rapt/eval/metric.h"

namespace rapt::eval {

// What a precision without a match counts as (Chen and Cherry 2014).
enum class Smoothing {
  exponential,  // half of a match, for the next such order a quarter, and so on
  floor,        // `smoothing_value` matches; 0.1 if unset
  add_k,        // `smoothing_value` more matches and n-grams beyond single words; 1 if unset
  none,         // nothing, and so the score is 0
};

std::string_view name_of(Smoothing smoothing);       // exp, floor, add-k, none
Smoothing parse_smoothing(std::string_view method);  // throws Error (usage) for another name

struct BleuOptions {
  BleuTokenizer tokenizer = BleuTokenizer::v13a;
  bool lowercase = false;
  Smoothing smoothing = Smoothing::exponential;
  std::optional<double> smoothing_value{};
  // Whether orders that no hypothesis is long enough for are left out: for single segments.
  bool effective_order = false;
};

// Counts: words of the hypothesis, of the reference nearest in length, then matches and n-grams of
// orders 1 to 4.
class Bleu : public Metric {
 public:
  // Throws Error (usage) on a smoothing value that is not a positive number.
  explicit Bleu(const BleuOptions& options = {});

  std::string name() const override { return "BLEU"; }
  Signature settings() const override;
  Counts count(std::string_view hypothesis,
               std::span<const std::string_view> references) const override;
  double score(std::span<const int64_t> counts) const override;
  std::string details(std::span<const int64_t> counts) const override;
  std::unique_ptr<Metric> of_segments() const override;

 private:
  BleuOptions options_;
};

}  // namespace rapt::eval
