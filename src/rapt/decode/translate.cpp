#include "rapt/decode/translate.h"

#include <algorithm>
#include <numeric>

#include "rapt/base/check.h"

namespace rapt::decode {
namespace {

// Batches that are sorted together. More leave a little less waiting in a batch, and let the first
// answer wait.
constexpr int64_t kBatchesOfWindow = 16;

// The ids of the next line, or why it is refused; nothing after the last line.
std::optional<Translation> next_line(const Translator& translator, text::LineReader& lines) {
  const int64_t before = lines.number();
  Translation result;
  try {
    const auto line = lines.next();
    if (!line) return std::nullopt;
    result.line = lines.number();
    const std::string where = fmt::format("{}:{}", lines.name(), result.line);
    result.source = translator.source.encode(*line, where);
    const auto words = static_cast<int64_t>(result.source.size());
    const int64_t max_len = translator.model->config().max_len;
    if (words > max_len) {
      fail(ErrorKind::data, "{}: the line has {} {}, the model takes {} (its max_len)", where,
           words, translator.source.unit(), max_len);
    }
  } catch (const Error& error) {
    // Only a line that was read can be passed over.
    if (error.kind() != ErrorKind::data || lines.number() == before) throw;
    result = {};
    result.line = lines.number();
    result.refused = error.what();
  }
  return result;
}

void take_alternatives(const Translator& translator, std::vector<Hypothesis> hypotheses,
                       Translation& line) {
  for (Hypothesis& h : hypotheses) {
    std::string text = translator.target.decode(h.ids);
    line.n_best.push_back({std::move(h), std::move(text)});
  }
  const Hypothesis& best = line.n_best.front().hypothesis;
  line.decoded = {.ids = best.ids, .score = best.log_probability, .ended = best.ended};
  line.text = line.n_best.front().text;
}

void translate_batch(const Translator& translator, const TranslateOptions& options,
                     const std::vector<Translation*>& batch) {
  std::vector<std::vector<int32_t>> sentences;
  sentences.reserve(batch.size());
  for (const Translation* line : batch) sentences.push_back(line->source);
  if (options.beam) {
    auto results = beam_search(*translator.model, sentences, *options.beam);
    for (size_t i = 0; i < batch.size(); ++i)
      take_alternatives(translator, std::move(results[i]), *batch[i]);
    return;
  }
  std::vector<Decoded> results = greedy(*translator.model, sentences, options.greedy);
  for (size_t i = 0; i < batch.size(); ++i) {
    batch[i]->decoded = std::move(results[i]);
    batch[i]->text = translator.target.decode(batch[i]->decoded.ids);
  }
}

// Lines that are translated in the order of their lengths and given in their own.
class Window {
 public:
  Window(const Translator& translator, const TranslateOptions& options,
         const std::function<void(const Translation&)>& each)
      : translator_(translator), options_(options), each_(each) {}

  bool empty() const { return lines_.empty(); }
  bool full() const {
    return static_cast<int64_t>(lines_.size()) >= options_.batch * kBatchesOfWindow;
  }
  void add(Translation line) { lines_.push_back(std::move(line)); }

  void translate() {
    std::vector<size_t> order(lines_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return lines_[a].source.size() < lines_[b].source.size();
    });
    std::vector<bool> done(lines_.size(), false);
    size_t given = 0;
    for (size_t begin = 0; begin < order.size(); begin += static_cast<size_t>(options_.batch)) {
      const size_t end = std::min(order.size(), begin + static_cast<size_t>(options_.batch));
      std::vector<Translation*> batch;
      for (size_t i = begin; i < end; ++i) batch.push_back(&lines_[order[i]]);
      translate_batch(translator_, options_, batch);
      for (size_t i = begin; i < end; ++i) done[order[i]] = true;
      for (; given < lines_.size() && done[given]; ++given) each_(lines_[given]);
    }
    lines_.clear();
  }

 private:
  const Translator& translator_;
  const TranslateOptions& options_;
  const std::function<void(const Translation&)>& each_;
  std::vector<Translation> lines_;
};

}  // namespace

void translate_lines(const Translator& translator, text::LineReader& lines,
                     const TranslateOptions& options,
                     const std::function<void(const Translation&)>& each) {
  RAPT_CHECK(options.batch > 0 && options.batch <= kMostLinesOfBatch,
             "translate: expected a batch of 1 to {} lines, got {}", kMostLinesOfBatch,
             options.batch);
  Window window(translator, options, each);
  for (;;) {
    const bool waits = options.ready && !window.empty() && !options.ready();
    if (waits || window.full()) window.translate();
    std::optional<Translation> line;
    try {
      line = next_line(translator, lines);
    } catch (const Error&) {  // reading fails: what was read before is not lost
      window.translate();
      throw;
    }
    if (!line) return window.translate();
    window.add(std::move(*line));
  }
}

}  // namespace rapt::decode
