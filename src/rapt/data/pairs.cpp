#include "rapt/data/pairs.h"

#include "rapt/base/check.h"
#include "rapt/text/words.h"

namespace rapt::data {
namespace {

// Counts the lines that the longer file has beyond the shorter one, then refuses the pair of files.
[[noreturn]] void refuse_unequal(const text::LineReader& shorter, text::LineReader& longer) {
  while (longer.next()) {
  }
  fail(ErrorKind::data,
       "{} and {} do not belong together: the first ends after line {}, the second has a line {} "
       "and {} lines in all; each line of one must translate the same line of the other",
       shorter.name(), longer.name(), shorter.number(), shorter.number() + 1, longer.number());
}

int64_t read_aligned(const PairFiles& files, const text::LineOptions& options,
                     const LinePair& each) {
  text::LineReader sources(files.source, options);
  text::LineReader targets(files.target, options);
  while (true) {
    const auto source_line = sources.next();
    const auto target_line = targets.next();
    if (!source_line && !target_line) return sources.replaced() + targets.replaced();
    if (!source_line) refuse_unequal(sources, targets);
    if (!target_line) refuse_unequal(targets, sources);
    each(*source_line, *target_line, sources.number());
  }
}

// The text of a column, counted from 1.
std::string_view column(std::string_view line, int64_t number, const std::string& where) {
  for (int64_t n = 1;; ++n) {
    const size_t tab = line.find('\t');
    if (n == number) return line.substr(0, tab);
    if (tab == std::string_view::npos)
      fail(ErrorKind::data, "{}: expected at least {} columns with tabs between them, got {}",
           where, number, n);
    line.remove_prefix(tab + 1);
  }
}

int64_t read_columns(const PairFiles& files, const text::LineOptions& options,
                     const LinePair& each) {
  RAPT_CHECK(files.source_column >= 1 && files.target_column >= 1,
             "pairs: expected columns from 1, got {} and {}", files.source_column,
             files.target_column);
  text::LineReader lines(files.pairs, options);
  while (const auto line = lines.next()) {
    if (line->empty()) {
      each("", "", lines.number());
      continue;
    }
    const std::string where = files.source_place(lines.number());
    each(column(*line, files.source_column, where), column(*line, files.target_column, where),
         lines.number());
  }
  return lines.replaced();
}

bool is_blank(std::string_view line) { return text::split_words(line).empty(); }

// Whether a side has more words than it may; throws where such pairs are not left out.
bool too_long(std::span<const int32_t> sentence, int64_t limit, bool skip, std::string_view unit,
              const std::string& where) {
  const auto words = static_cast<int64_t>(sentence.size());
  if (limit == 0 || words <= limit) return false;
  if (!skip) {
    fail(ErrorKind::data,
         "{}: the sentence has {} {}, the model takes {}; shorten it, raise max_len or have such "
         "pairs left out",
         where, words, unit, limit);
  }
  return true;
}

}  // namespace

void Sentences::add(std::span<const int32_t> sentence) {
  ids_.insert(ids_.end(), sentence.begin(), sentence.end());
  ends_.push_back(ids_.size());
}

int64_t Sentences::length(int64_t sentence) const {
  return static_cast<int64_t>((*this)[sentence].size());
}

std::span<const int32_t> Sentences::operator[](int64_t sentence) const {
  RAPT_CHECK(sentence >= 0 && sentence < size(), "sentences: expected an index below {}, got {}",
             size(), sentence);
  const auto s = static_cast<size_t>(sentence);
  return std::span(ids_).subspan(ends_[s], ends_[s + 1] - ends_[s]);
}

void PairCorpus::add(std::span<const int32_t> source, std::span<const int32_t> target,
                     uint64_t line) {
  sources.add(source);
  targets.add(target);
  lines.push_back(line);
}

std::string PairFiles::source_place(int64_t line) const {
  return fmt::format("{}:{}", pairs.empty() ? source.string() : pairs.string(), line);
}

std::string PairFiles::target_place(int64_t line) const {
  return fmt::format("{}:{}", pairs.empty() ? target.string() : pairs.string(), line);
}

int64_t for_each_pair(const PairFiles& files, const text::LineOptions& options,
                      const LinePair& each) {
  return files.pairs.empty() ? read_aligned(files, options, each)
                             : read_columns(files, options, each);
}

PairCorpus read_pairs(const PairFiles& files, const text::Tokenizer& source,
                      const text::Tokenizer& target, const PairOptions& options) {
  PairCorpus corpus;
  const auto add = [&](std::string_view source_line, std::string_view target_line, int64_t line) {
    if (is_blank(source_line) || is_blank(target_line)) {
      ++corpus.empty_pairs;
      return;
    }
    const std::string source_place = files.source_place(line);
    const std::string target_place = files.target_place(line);
    const auto source_ids = source.encode(source_line, source_place);
    const auto target_ids = target.encode(target_line, target_place);
    if (source_ids.empty() || target_ids.empty()) {  // white space that only subwords see through
      ++corpus.empty_pairs;
    } else if (too_long(source_ids, options.max_source_words, options.skip_too_long, source.unit(),
                        source_place) ||
               too_long(target_ids, options.max_target_words, options.skip_too_long, target.unit(),
                        target_place)) {
      ++corpus.too_long_pairs;
    } else {
      corpus.add(source_ids, target_ids, static_cast<uint64_t>(line - 1));
    }
  };
  corpus.replaced = for_each_pair(files, options.lines, add);
  if (corpus.size() == 0) {
    fail(ErrorKind::data,
         "{} no sentence pair to train on ({} pairs with an empty side, {} too long)",
         files.pairs.empty()
             ? fmt::format("{} and {} hold", files.source.string(), files.target.string())
             : files.pairs.string() + " holds",
         corpus.empty_pairs, corpus.too_long_pairs);
  }
  return corpus;
}

PairVocabularies build_vocabularies(const PairFiles& files, const text::VocabularyOptions& options,
                                    const text::LineOptions& lines) {
  text::WordCounter sources, targets;
  for_each_pair(files, lines,
                [&](std::string_view source_line, std::string_view target_line, int64_t) {
                  sources.add(source_line);
                  targets.add(target_line);
                });
  return {sources.build(options), targets.build(options)};
}

PairVocabularies build_subwords(const PairFiles& files, const text::SubwordTraining& options,
                                const text::LineOptions& lines) {
  std::vector<std::string> all;
  for_each_pair(files, lines,
                [&](std::string_view source_line, std::string_view target_line, int64_t) {
                  all.emplace_back(source_line);
                  all.emplace_back(target_line);
                });
  size_t next = 0;
  const text::Subwords joint = text::train_subwords(
      [&]() -> std::optional<std::string_view> {
        if (next == all.size()) return std::nullopt;
        return all[next++];
      },
      options);
  return {joint, joint};
}

}  // namespace rapt::data
