#include "rapt/text/vocabulary.h"

#include <algorithm>
#include <utility>

#include "rapt/base/check.h"
#include "rapt/base/file.h"
#include "rapt/text/lines.h"
#include "rapt/text/words.h"

namespace rapt::text {
namespace {

bool is_special_word(std::string_view word) {
  return std::find(std::begin(kSpecialWords), std::end(kSpecialWords), word) !=
         std::end(kSpecialWords);
}

// The place of an entry in messages: a file's line, or the entry's id where there is no file.
std::string place(const std::string& name, int64_t id) {
  return name.empty() ? fmt::format("entry {}", id) : fmt::format("line {}", id + 1);
}

[[noreturn]] void refuse(const std::string& name, int64_t id, const std::string& what) {
  fail(ErrorKind::data, "vocabulary{}{}: {}: {}", name.empty() ? "" : " ", name, place(name, id),
       what);
}

void check_word(std::string_view word, const std::string& name, int64_t id) {
  if (word.empty()) refuse(name, id, "the entry is empty; each line must hold one word");
  if (word.find_first_of(" \t\n") != std::string_view::npos) {
    refuse(name, id,
           fmt::format("the entry {} holds a space, a tab or a line feed; each line must hold one "
                       "word and nothing else",
                       quote_word(word)));
  }
}

void check_special(const SpecialIds& special, int64_t size, const std::string& name) {
  const std::pair<const char*, std::optional<int32_t>> ids[] = {{"padding", special.pad},
                                                                {"start", special.start},
                                                                {"end", special.end},
                                                                {"<unk>", special.unk}};
  for (const auto& [role, id] : ids) {
    if (id && (*id < 0 || *id >= size)) {
      fail(ErrorKind::data,
           "vocabulary{}{}: the id of the {} entry is {}, but there are {} entries",
           name.empty() ? "" : " ", name, role, *id, size);
    }
    if (id && special.unk == id && role != ids[3].first) {
      fail(ErrorKind::data,
           "vocabulary{}{}: <unk> and the {} entry have the same id {}; unknown words would become "
           "control entries",
           name.empty() ? "" : " ", name, role, *id);
    }
  }
}

}  // namespace

Vocabulary::Vocabulary(std::vector<std::string> words, SpecialIds special)
    : Vocabulary(std::move(words), special, "") {}

Vocabulary::Vocabulary(std::vector<std::string> words, SpecialIds special, const std::string& name)
    : words_(std::move(words)), special_(special) {
  ids_.reserve(words_.size());
  for (size_t i = 0; i < words_.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    check_word(words_[i], name, id);
    const auto [first, is_new] = ids_.emplace(words_[i], id);
    if (!is_new) {
      refuse(name, id,
             fmt::format("the entry {} stands at {} already; each word may stand once",
                         quote_word(words_[i]), place(name, first->second)));
    }
  }
  check_special(special_, size(), name);
}

Vocabulary Vocabulary::read(const std::filesystem::path& path, SpecialIds special,
                            const Limits& limits) {
  LineReader lines(path, {.limits = limits});
  std::vector<std::string> words;
  while (const auto line = lines.next()) {
    if (std::cmp_greater_equal(words.size(), limits.vocabulary)) {
      fail(ErrorKind::data, "vocabulary {}: more than {} entries", lines.name(), limits.vocabulary);
    }
    words.emplace_back(*line);
  }
  if (words.empty()) fail(ErrorKind::data, "vocabulary {}: the file is empty", lines.name());
  return Vocabulary(std::move(words), special, lines.name());
}

void Vocabulary::write(const std::filesystem::path& path) const {
  std::string content;
  // Reading drops one mark at the start and one \r of each line: words that own one get another.
  if (!words_.empty() && words_[0].starts_with(kByteOrderMark)) content += kByteOrderMark;
  for (const std::string& word : words_) {
    content += word;
    content += word.ends_with('\r') ? "\r\n" : "\n";
  }
  write_file(path, content);
}

const std::string& Vocabulary::word(int64_t id) const {
  if (id < 0 || id >= size()) {
    fail(ErrorKind::data, "vocabulary: expected an id below {}, got {}", size(), id);
  }
  return words_[static_cast<size_t>(id)];
}

std::optional<int32_t> Vocabulary::entry(std::string_view word) const {
  const auto found = ids_.find(word);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

std::optional<int32_t> Vocabulary::find(std::string_view word) const {
  const std::optional<int32_t> id = entry(word);
  return id && is_control(*id) ? std::nullopt : id;
}

std::vector<int32_t> Vocabulary::encode(std::string_view line, std::string_view where) const {
  std::vector<int32_t> ids;
  for (const std::string_view word : split_words(line)) {
    std::optional<int32_t> id = find(word);
    if (!id) id = special_.unk;
    if (!id) {
      fail(ErrorKind::data, "{}: the vocabulary has no word {} and no <unk> to stand for it", where,
           quote_word(word));
    }
    ids.push_back(*id);
  }
  return ids;
}

std::string Vocabulary::decode(std::span<const int32_t> ids) const {
  std::vector<std::string_view> words;
  for (const int32_t id : ids) {
    const std::string& spelling = word(id);
    if (!is_control(id)) words.push_back(spelling);
  }
  return join_words(words);
}

bool Vocabulary::is_control(int64_t id) const {
  return id == special_.pad || id == special_.start || id == special_.end;
}

void WordCounter::add(std::string_view line) {
  for (const std::string_view word : split_words(line)) {
    if (is_special_word(word)) continue;
    const auto found = counts_.find(word);
    if (found != counts_.end()) {
      ++found->second;
    } else {
      counts_.emplace(word, 1);
    }
  }
}

Vocabulary WordCounter::build(const VocabularyOptions& options) const {
  if (options.min_count < 1 || options.max_words < 0) {
    fail(ErrorKind::config,
         "vocabulary: expected a minimum count of at least 1 and a bound of at least 0 words, got "
         "{} "
         "and {}",
         options.min_count, options.max_words);
  }
  std::vector<std::pair<int64_t, std::string_view>> kept;  // (-count, word)
  for (const auto& [word, count] : counts_) {
    if (count >= options.min_count) kept.emplace_back(-count, word);
  }
  std::sort(kept.begin(), kept.end());
  if (options.max_words > 0 && std::cmp_greater(kept.size(), options.max_words)) {
    kept.resize(static_cast<size_t>(options.max_words));
  }
  if (!options.unk && kept.size() < counts_.size()) {
    fail(ErrorKind::config,
         "vocabulary: {} of {} words would be left out without an <unk> to stand for them; keep "
         "every "
         "word or allow <unk>",
         counts_.size() - kept.size(), counts_.size());
  }
  std::vector<std::string> words(std::begin(kSpecialWords),
                                 std::end(kSpecialWords) - (options.unk ? 0 : 1));
  for (const auto& [count, word] : kept) words.emplace_back(word);
  SpecialIds special{.pad = 0, .start = 1, .end = 2};
  if (options.unk) special.unk = 3;
  return Vocabulary(std::move(words), special);
}

}  // namespace rapt::text
