#include "rapt/train/validation.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "rapt/base/check.h"
#include "rapt/base/names.h"
#include "rapt/decode/greedy.h"
#include "rapt/decode/length_limit.h"
#include "rapt/eval/bleu.h"
#include "rapt/eval/chrf.h"
#include "rapt/train/seq2seq.h"

namespace rapt::train {
namespace {

// Sentences translated together. Like lengths stand together, so that few wait for others.
constexpr size_t kTogether = 64;

int64_t longest_pair(const data::PairCorpus& corpus) {
  int64_t longest = 0;
  for (int64_t pair = 0; pair < corpus.size(); ++pair)
    longest = std::max(longest, data::tokens_of(corpus, pair));
  return longest;
}

std::vector<std::string> translate(const decode::Translator& translator,
                                   const data::PairCorpus& corpus) {
  std::vector<int64_t> order(static_cast<size_t>(corpus.size()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return corpus.sources.length(a) < corpus.sources.length(b);
  });
  std::vector<std::string> all(order.size());
  for (size_t begin = 0; begin < order.size(); begin += kTogether) {
    const size_t end = std::min(order.size(), begin + kTogether);
    std::vector<std::vector<int32_t>> sources;
    for (size_t i = begin; i < end; ++i) {
      const auto source = corpus.sources[order[i]];
      sources.emplace_back(source.begin(), source.end());
    }
    // A model that has not learnt to stop yet does not get to the end of its positions.
    const auto results = decode::greedy(
        *translator.model, sources,
        {.max_length_ratio = decode::kLengthRatio, .max_length_extra = decode::kLengthExtra});
    for (size_t i = begin; i < end; ++i)
      all[static_cast<size_t>(order[i])] = translator.target.decode(results[i - begin].ids);
  }
  return all;
}

double score_of(const eval::Metric& metric, const std::vector<std::string>& translations,
                const std::vector<std::string>& references) {
  return metric.score(eval::sum(eval::count_segments(metric, translations, {&references, 1})));
}

constexpr NameTable<ValidationMetric, 3> kMetrics{{{ValidationMetric::loss, "loss"},
                                                   {ValidationMetric::bleu, "bleu"},
                                                   {ValidationMetric::chrf, "chrf"}}};

}  // namespace

std::string_view name_of(ValidationMetric metric) { return name_in(kMetrics, metric); }

ValidationMetric parse_validation_metric(std::string_view name) {
  return value_in(kMetrics, name, "validation metric");
}

ValidationSet read_validation(const data::PairFiles& files, const decode::Translator& translator,
                              const data::PairOptions& options) {
  ValidationSet set;
  set.corpus = data::read_pairs(files, translator.source, translator.target, options);
  size_t next = 0;
  data::for_each_pair(files, options.lines,
                      [&](std::string_view source, std::string_view target, int64_t line) {
                        const auto& lines = set.corpus.lines;
                        if (next == lines.size() || std::cmp_not_equal(lines[next], line - 1))
                          return;  // it was left out
                        ++next;
                        set.sources.emplace_back(source);
                        set.references.emplace_back(target);
                      });
  return set;
}

double Validation::perplexity() const { return std::exp(loss); }

double Validation::score(ValidationMetric metric) const {
  return metric == ValidationMetric::loss   ? -loss
         : metric == ValidationMetric::bleu ? bleu.value()
                                            : chrf.value();
}

Validation validate(const decode::Translator& translator, const ValidationSet& set,
                    ValidationMetric metric, int64_t tokens) {
  if (set.corpus.size() == 0)
    fail(ErrorKind::data, "validation: expected at least one pair, got none");
  const models::EncoderDecoder& model = *translator.model;
  const data::BatchPlan plan(
      set.corpus,
      {.tokens = std::max(tokens, longest_pair(set.corpus)), .shuffle = false, .like_length = true},
      0);
  Validation result;
  double sum = 0;
  for (int64_t b = 0; b < plan.size(); ++b) {
    const Seq2SeqBatch batch = to_tensors(
        data::make_batch(set.corpus, plan[b], model.config().start_id, model.config().end_id));
    const Loss loss = seq2seq_loss(model, batch, 0, Pass::inference());
    sum += loss.sum.item();
    result.tokens += loss.count;
  }
  result.loss = sum / static_cast<double>(result.tokens);
  if (metric == ValidationMetric::loss) return result;
  const std::vector<std::string> translations = translate(translator, set.corpus);
  result.bleu = score_of(eval::Bleu(), translations, set.references);
  result.chrf = score_of(eval::Chrf(), translations, set.references);
  result.source = set.sources.front();
  result.reference = set.references.front();
  result.translation = translations.front();
  return result;
}

}  // namespace rapt::train
