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
       "and "
       "{} lines in all; each line of one must translate the same line of the other",
       shorter.name(), longer.name(), shorter.number(), shorter.number() + 1, longer.number());
}

// Invalid UTF-8 sequences that were read as U+FFFD.
struct Replaced {
  int64_t source = 0;
  int64_t target = 0;
};

Replaced read_aligned(const std::filesystem::path& source, const std::filesystem::path& target,
                      const text::LineOptions& options, const LinePair& each) {
  text::LineReader sources(source, options);
  text::LineReader targets(target, options);
  while (true) {
    const auto source_line = sources.next();
    const auto target_line = targets.next();
    if (!source_line && !target_line) return {sources.replaced(), targets.replaced()};
    if (!source_line) refuse_unequal(sources, targets);
    if (!target_line) refuse_unequal(targets, sources);
    each(*source_line, *target_line, sources.number());
  }
}

bool is_blank(std::string_view line) { return text::split_words(line).empty(); }

// Whether a side has more words than it may; throws where such pairs are not left out.
bool too_long(std::span<const int32_t> sentence, int64_t limit, bool skip,
              const std::string& where) {
  const auto words = static_cast<int64_t>(sentence.size());
  if (limit == 0 || words <= limit) return false;
  if (!skip) {
    fail(
        ErrorKind::data,
        "{}: the sentence has {} words, the model takes {}; shorten it, raise max_len or have such "
        "pairs left out",
        where, words, limit);
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

void for_each_pair(const std::filesystem::path& source, const std::filesystem::path& target,
                   const text::LineOptions& options, const LinePair& each) {
  read_aligned(source, target, options, each);
}

PairCorpus read_pairs(const std::filesystem::path& source, const std::filesystem::path& target,
                      const text::Vocabulary& source_vocabulary,
                      const text::Vocabulary& target_vocabulary, const PairOptions& options) {
  PairCorpus corpus;
  const auto add = [&](std::string_view source_line, std::string_view target_line, int64_t line) {
    if (is_blank(source_line) || is_blank(target_line)) {
      ++corpus.empty_pairs;
      return;
    }
    const std::string source_place = fmt::format("{}:{}", source.string(), line);
    const std::string target_place = fmt::format("{}:{}", target.string(), line);
    const auto source_ids = source_vocabulary.encode(source_line, source_place);
    const auto target_ids = target_vocabulary.encode(target_line, target_place);
    if (too_long(source_ids, options.max_source_words, options.skip_too_long, source_place) ||
        too_long(target_ids, options.max_target_words, options.skip_too_long, target_place)) {
      ++corpus.too_long_pairs;
    } else {
      corpus.add(source_ids, target_ids, static_cast<uint64_t>(line - 1));
    }
  };
  const Replaced replaced = read_aligned(source, target, options.lines, add);
  corpus.replaced = replaced.source + replaced.target;
  if (corpus.size() == 0) {
    fail(ErrorKind::data,
         "{} and {} hold no sentence pair to train on ({} pairs with an empty side, {} too long)",
         source.string(), target.string(), corpus.empty_pairs, corpus.too_long_pairs);
  }
  return corpus;
}

PairVocabularies build_vocabularies(const std::filesystem::path& source,
                                    const std::filesystem::path& target,
                                    const text::VocabularyOptions& options,
                                    const text::LineOptions& lines) {
  text::WordCounter sources, targets;
  for_each_pair(source, target, lines,
                [&](std::string_view source_line, std::string_view target_line, int64_t) {
                  sources.add(source_line);
                  targets.add(target_line);
                });
  return {sources.build(options), targets.build(options)};
}

}  // namespace rapt::data
