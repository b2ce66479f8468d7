// Sentence pairs: two text files in which line n of one translates line n of the other.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rapt/text/lines.h"
#include "rapt/text/tokenizer.h"
#include "rapt/text/train_subwords.h"

namespace rapt::data {

// Sentences as ids, stored one behind the other.
class Sentences {
 public:
  void add(std::span<const int32_t> sentence);
  int64_t size() const { return static_cast<int64_t>(ends_.size()) - 1; }

  // Both throw Error for a sentence outside [0, size()).
  int64_t length(int64_t sentence) const;
  std::span<const int32_t> operator[](int64_t sentence) const;

 private:
  std::vector<int32_t> ids_;
  std::vector<size_t> ends_ = {0};  // sentence s is ids_[ends_[s]] to ids_[ends_[s + 1]]
};

// A corpus of pairs. The pairs keep the order of the files.
struct PairCorpus {
  Sentences sources;  // words or pieces alone, without start and end
  Sentences targets;  // the same
  std::vector<uint64_t>
      lines;  // the line of each pair, from 0: its identity in shuffling and dropout

  int64_t empty_pairs = 0;     // left out: a side has no token
  int64_t too_long_pairs = 0;  // left out: a side has too many
  int64_t replaced = 0;        // invalid UTF-8 sequences read as U+FFFD

  int64_t size() const { return sources.size(); }
  void add(std::span<const int32_t> source, std::span<const int32_t> target, uint64_t line);
};

struct PairOptions {
  // The most tokens (words or pieces) of a source, and of a target; 0: no bound. A model with
  // `max_len` positions takes max_len of a source and max_len - 1 of a target, since the start
  // symbol is a position too.
  int64_t max_source_words = 0;
  int64_t max_target_words = 0;
  // Whether a pair with a longer side is left out and counted; else it is an Error.
  bool skip_too_long = false;
  text::LineOptions lines{};
};

// Where pairs are: in two aligned files, or in one with a pair a line and tabs between its columns,
// of which others than the two are left alone (Tatoeba's third says whom to thank).
struct PairFiles {
  std::filesystem::path source{}, target{};
  std::filesystem::path pairs{};                 // instead of both
  int64_t source_column = 1, target_column = 2;  // of `pairs`, from 1

  // The place of a line in messages, "train.de:7".
  std::string source_place(int64_t line) const;
  std::string target_place(int64_t line) const;
};

// Calls `each(source, target, line)` for every pair of lines, from 1. The views are valid during
// the call. Throws Error (data): a missing file, bad text, files of unequal length, naming the
// first line that one of them lacks, and a line that lacks a column; Error (failure) on a column
// below 1. Gives the number of invalid UTF-8 sequences that were read as U+FFFD.
using LinePair =
    std::function<void(std::string_view source, std::string_view target, int64_t line)>;
int64_t for_each_pair(const PairFiles& files, const text::LineOptions& options,
                      const LinePair& each);

// Reads pairs. One with an empty or blank side is left out as a whole. Throws Error (data) as
// for_each_pair and Tokenizer::encode do, on a pair that is too long, and where no pair is left.
PairCorpus read_pairs(const PairFiles& files, const text::Tokenizer& source,
                      const text::Tokenizer& target, const PairOptions& options = {});

// Vocabularies of the two sides, from the text itself: of words, or one of subwords for both.
// Throw as for_each_pair, WordCounter::build and train_subwords do.
struct PairVocabularies {
  text::Tokenizer source;
  text::Tokenizer target;
};
PairVocabularies build_vocabularies(const PairFiles& files,
                                    const text::VocabularyOptions& options = {},
                                    const text::LineOptions& lines = {});
PairVocabularies build_subwords(const PairFiles& files, const text::SubwordTraining& options,
                                const text::LineOptions& lines = {});

}  // namespace rapt::data
