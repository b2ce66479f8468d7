#include "rapt/text/words.h"

#include <fmt/format.h>

namespace rapt::text {
namespace {

constexpr std::string_view kBlank = " \t";

template <class Word>
std::string join(std::span<const Word> words) {
  std::string line;
  for (const Word& word : words) {
    if (!line.empty()) line += ' ';
    line += word;
  }
  return line;
}

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace

std::vector<std::string_view> split_words(std::string_view line) {
  std::vector<std::string_view> words;
  for (size_t begin = line.find_first_not_of(kBlank); begin != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(kBlank, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = line.find_first_not_of(kBlank, end);
  }
  return words;
}

std::string join_words(std::span<const std::string_view> words) { return join(words); }
std::string join_words(std::span<const std::string> words) { return join(words); }

std::string quote_word(std::string_view word) {
  size_t end = word.size();
  if (end > 40) {
    end = 40;
    while (end > 36 && is_continuation(word[end])) --end;
  }
  std::string result = "'";
  for (const char c : word.substr(0, end)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += c;
    }
  }
  return result + (end < word.size() ? "...'" : "'");
}

}  // namespace rapt::text
