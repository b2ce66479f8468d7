// How good a translator is on pairs that it does not learn from.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rapt/data/batches.h"
#include "rapt/decode/translator.h"

namespace rapt::train {

// What decides which model is the best. BLEU and chrF compare greedy translations with the text.
enum class ValidationMetric { loss, bleu, chrf };
std::string_view name_of(ValidationMetric metric);           // loss, bleu, chrf
ValidationMetric parse_validation_metric(std::string_view);  // throws Error (usage)

struct ValidationSet {
  data::PairCorpus corpus;
  std::vector<std::string> sources, references;  // the text of its pairs
};

// Reads the pairs that fit the model; the others are counted in the corpus. Throws as
// data::read_pairs does.
ValidationSet read_validation(const data::PairFiles& files, const decode::Translator& translator,
                              const data::PairOptions& options);

struct Validation {
  double loss = 0;  // mean over the target tokens, without label smoothing
  int64_t tokens = 0;
  std::optional<double> bleu{}, chrf{};  // with a metric that translates
  // The first pair as an example: with a metric that translates.
  std::string source{}, reference{}, translation{};

  double perplexity() const;  // exp(loss)
  // By `metric`, the larger the better; for bleu and chrf of a validation with such a metric.
  double score(ValidationMetric metric) const;
};

// `tokens`: of a batch, source and target together; longer pairs are batches of their own. Changes
// nothing. Throws Error (data) for an empty set, and for logits that are not finite.
Validation validate(const decode::Translator& translator, const ValidationSet& set,
                    ValidationMetric metric, int64_t tokens);

}  // namespace rapt::train
