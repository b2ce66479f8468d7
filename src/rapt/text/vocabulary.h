// Vocabularies: words as ids, and back.
//
// A vocabulary's file is UTF-8 text with one word a line; a word's id is its line, from 0. It says
// nothing about which entries are special: the ids of padding, start, end and the unknown word are
// given beside it (a model's config.json holds them).
//
// Text never turns into control entries: a user's word that is spelt like the entry for padding,
// start or end is an unknown word.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rapt/base/limits.h"

namespace rapt::text {

// The ids of the special entries; an entry that a vocabulary lacks stays unset. Padding, start and
// end may share an id (padding is known by length, never by id).
struct SpecialIds {
  std::optional<int32_t> pad{};
  std::optional<int32_t> start{};
  std::optional<int32_t> end{};
  std::optional<int32_t> unk{};
};

// How the special entries are spelt that vocabularies and subwords get here, in the order of their
// ids.
inline constexpr std::array<std::string_view, 4> kSpecialWords = {"<pad>", "<s>", "</s>", "<unk>"};

struct WordHash {
  using is_transparent = void;
  size_t operator()(std::string_view word) const { return std::hash<std::string_view>{}(word); }
};

template <class Value>
using WordMap = std::unordered_map<std::string, Value, WordHash, std::equal_to<>>;

class Vocabulary {
 public:
  Vocabulary() = default;

  // Entries in the order of their ids. Throws Error (data): an empty entry, one that holds a space,
  // a tab or a line feed, one that stands twice (both places are named), a special id out of range,
  // the unknown word on a control entry.
  explicit Vocabulary(std::vector<std::string> words, SpecialIds special = {});

  // Reads a file; throws as the constructor does, with the lines by their numbers.
  static Vocabulary read(const std::filesystem::path& path, SpecialIds special = {},
                         const Limits& limits = {});

  // Writes the file that read() reads, whole or not at all.
  void write(const std::filesystem::path& path) const;

  int64_t size() const { return static_cast<int64_t>(words_.size()); }
  const SpecialIds& special() const { return special_; }
  std::span<const std::string> words() const { return words_; }

  // The word with an id. Throws Error (data) on an id outside [0, size()).
  const std::string& word(int64_t id) const;

  // The id of an entry by its spelling, control entries included: for configurations, not for text.
  std::optional<int32_t> entry(std::string_view word) const;

  // The id of a word of a text: nothing for a word that the vocabulary does not hold, and for
  // spellings of control entries.
  std::optional<int32_t> find(std::string_view word) const;

  // The ids of a line's words (split_words). A word that is not found becomes the unknown word's
  // id; where there is none, throws Error (data) naming the word and `where` ("train.en:7").
  std::vector<int32_t> encode(std::string_view line, std::string_view where) const;

  // The words of `ids` joined by spaces, without padding, start and end. Throws Error (data) on an
  // id outside [0, size()).
  std::string decode(std::span<const int32_t> ids) const;

  // Whether `id` is the entry for padding, start or end.
  bool is_control(int64_t id) const;

 private:
  Vocabulary(std::vector<std::string> words, SpecialIds special, const std::string& name);

  std::vector<std::string> words_;
  WordMap<int32_t> ids_;
  SpecialIds special_;
};

// How a vocabulary is built from text. The special entries come first: `<pad>` 0, `<s>` 1, `</s>` 2
// and, where wanted, `<unk>` 3; words follow, the more frequent first, equally frequent ones in the
// order of their bytes, so that the order of the lines does not matter.
struct VocabularyOptions {
  int64_t min_count = 1;  // rarer words are left to <unk>
  int64_t max_words = 0;  // at most so many beside the special entries; 0: no bound
  bool unk = true;
};

// Counts words, then builds a vocabulary from them.
class WordCounter {
 public:
  // Counts the words of a line; spellings of the special entries are not counted.
  void add(std::string_view line);

  // Throws Error (config) where words would be left out and `unk` is off, or the options are
  // absurd.
  Vocabulary build(const VocabularyOptions& options = {}) const;

 private:
  WordMap<int64_t> counts_;
};

}  // namespace rapt::text
