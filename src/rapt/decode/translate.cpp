#include "rapt/decode/translate.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "rapt/base/check.h"

namespace rapt::decode {
namespace {

// Batches that are sorted together. More leave a little less waiting in a batch, and let the first
// answer wait.
constexpr int64_t kBatchesOfWindow = 16;

// The ids of `line`, one of `lines`, as many as the model has positions.
std::vector<int32_t> encode_line(const Translator& translator, const text::Tokenizer& tokenizer,
                                 const text::LineReader& lines, std::string_view line) {
  const std::string where = fmt::format("{}:{}", lines.name(), lines.number());
  std::vector<int32_t> ids = tokenizer.encode(line, where);
  const int64_t max_len = translator.model->config().max_len;
  if (std::cmp_greater(ids.size(), max_len)) {
    fail(ErrorKind::data, "{}: the line has {} {}, the model takes {} (its max_len)", where,
         ids.size(), tokenizer.unit(), max_len);
  }
  return ids;
}

// Runs `read`, which reads a line of `lines`; where only that line is at fault, `result` becomes
// one that is refused.
template <class Read>
void refuse_bad_lines(const text::LineReader& lines, Translation& result, Read read) {
  const int64_t before = lines.number();
  try {
    read();
  } catch (const Error& error) {
    // Only a line that was read can be passed over.
    if (error.kind() != ErrorKind::data || lines.number() == before) throw;
    const std::string first = result.refused;
    result = {};
    result.refused = first.empty() ? error.what() : first;
  }
}

// The next line, or why it is refused; nothing after the last line.
std::optional<Translation> next_line(const Translator& translator, text::LineReader& lines,
                                     const TranslateOptions& options) {
  Translation result;
  bool over = false;
  refuse_bad_lines(lines, result, [&] {
    const auto line = lines.next();
    over = !line;
    if (over) return;
    result.source = encode_line(translator, translator.source, lines, *line);
    if (options.alignments) result.source_text = *line;
  });
  if (over) return std::nullopt;
  if (options.prefixes != nullptr) {
    text::LineReader& prefixes = *options.prefixes;
    refuse_bad_lines(prefixes, result, [&] {
      const auto line = prefixes.next();
      if (!line) {
        fail(ErrorKind::data, "{}: expected a prefix for each line of {}, got {}", prefixes.name(),
             lines.name(), prefixes.number());
      }
      std::vector<int32_t> prefix = encode_line(translator, translator.target, prefixes, *line);
      if (result.refused.empty()) result.prefix = std::move(prefix);
    });
  }
  result.line = lines.number();
  return result;
}

// After the last of `lines`.
void check_no_more(text::LineReader& prefixes, const text::LineReader& lines) {
  const int64_t before = prefixes.number();
  try {
    if (!prefixes.next()) return;
  } catch (const Error&) {  // a bad line is one more, too
    if (prefixes.number() == before) throw;
  }
  fail(ErrorKind::data, "{}: expected a prefix for each line of {}, {}, got more", prefixes.name(),
       lines.name(), lines.number());
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

// Lines that are decoded together.
struct Batch {
  std::vector<std::vector<int32_t>> sentences, prefixes;
  std::vector<uint64_t> samples;  // the lines' numbers

  explicit Batch(const std::vector<Translation*>& lines) {
    for (const Translation* line : lines) {
      sentences.push_back(line->source);
      prefixes.push_back(line->prefix);
      samples.push_back(static_cast<uint64_t>(line->line));
    }
  }
};

std::vector<Decoded> decode_batch(const Translator& translator, const TranslateOptions& options,
                                  const Batch& batch) {
  if (options.sample) {
    SampleOptions how = *options.sample;
    how.samples = batch.samples;
    how.prefixes = batch.prefixes;
    return sample(*translator.model, batch.sentences, how);
  }
  GreedyOptions how = options.greedy;
  how.prefixes = batch.prefixes;
  return greedy(*translator.model, batch.sentences, how);
}

void translate_batch(const Translator& translator, const TranslateOptions& options,
                     const std::vector<Translation*>& lines) {
  const Batch batch(lines);
  if (options.beam) {
    BeamOptions how = *options.beam;
    how.prefixes = batch.prefixes;
    auto results = beam_search(*translator.model, batch.sentences, how);
    for (size_t i = 0; i < lines.size(); ++i)
      take_alternatives(translator, std::move(results[i]), *lines[i]);
  } else {
    std::vector<Decoded> results = decode_batch(translator, options, batch);
    for (size_t i = 0; i < lines.size(); ++i) {
      lines[i]->decoded = std::move(results[i]);
      lines[i]->text = translator.target.decode(lines[i]->decoded.ids);
    }
  }
  if (!options.alignments) return;
  for (Translation* line : lines)
    line->alignment = align_words(translator, line->source_text, line->source, line->decoded.ids);
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
  RAPT_CHECK(!options.beam || !options.sample, "translate: expected a beam or sampling, got both");
  Window window(translator, options, each);
  for (;;) {
    const bool waits = options.ready && !window.empty() && !options.ready();
    if (waits || window.full()) window.translate();
    std::optional<Translation> line;
    try {
      line = next_line(translator, lines, options);
    } catch (const Error&) {  // reading fails: what was read before is not lost
      window.translate();
      throw;
    }
    if (!line) break;
    window.add(std::move(*line));
  }
  window.translate();
  if (options.prefixes != nullptr) check_no_more(*options.prefixes, lines);
}

}  // namespace rapt::decode
