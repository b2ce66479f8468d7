#include "rapt/eval/bleu_tokens.h"

#include <array>
#include <utility>

#include "rapt/base/check.h"
#include "rapt/base/names.h"
#include "rapt/text/unicode.h"

namespace rapt::eval {
namespace {

using text::is_number;
using text::is_punctuation;
using text::is_symbol;

constexpr NameTable<BleuTokenizer, 5> kNames = {{{BleuTokenizer::v13a, "13a"},
                                                 {BleuTokenizer::international, "intl"},
                                                 {BleuTokenizer::characters, "char"},
                                                 {BleuTokenizer::zh, "zh"},
                                                 {BleuTokenizer::none, "none"}}};

// Puts spaces around each character that `splits`.
template <class Splits>
std::u32string space_characters(std::u32string_view text, Splits splits) {
  std::u32string spaced;
  spaced.reserve(text.size() * 2);
  for (const char32_t c : text) {
    if (splits(c)) {
      spaced += {U' ', c, U' '};
    } else {
      spaced += c;
    }
  }
  return spaced;
}

// From left to right, two neighbours at a time that `matches`, without overlap: as a regular
// expression of two characters is substituted. `replace` appends what stands for them.
template <class Matches, class Replace>
std::u32string replace_pairs(std::u32string_view text, Matches matches, Replace replace) {
  std::u32string result;
  result.reserve(text.size() * 2);
  for (size_t i = 0; i < text.size(); ++i) {
    if (i + 1 < text.size() && matches(text[i], text[i + 1])) {
      replace(result, text[i], text[i + 1]);
      ++i;
    } else {
      result += text[i];
    }
  }
  return result;
}

void space_around_second(std::u32string& to, char32_t a, char32_t b) { to += {a, U' ', b, U' '}; }
void space_around_first(std::u32string& to, char32_t a, char32_t b) { to += {U' ', a, U' ', b}; }

std::u32string replace_all(std::u32string_view text, std::u32string_view from,
                           std::u32string_view to) {
  std::u32string result;
  size_t begin = 0;
  for (size_t at; (at = text.find(from, begin)) != std::u32string_view::npos;) {
    result += text.substr(begin, at - begin);
    result += to;
    begin = at + from.size();
  }
  return result += text.substr(begin);
}

bool is_digit(char32_t c) { return c >= U'0' && c <= U'9'; }
bool is_period_or_comma(char32_t c) { return c == U'.' || c == U','; }

// ASCII punctuation and symbols but the apostrophe, comma, hyphen and period.
bool is_ascii_symbol(char32_t c) {
  return (c >= U'{' && c <= U'~') || (c >= U'[' && c <= U'`') || (c >= U' ' && c <= U'&') ||
         (c >= U'(' && c <= U'+') || (c >= U':' && c <= U'@') || c == U'/';
}

// mteval-v13a's rules for Western languages.
std::u32string split_western(std::u32string_view line) {
  std::u32string text = space_characters(line, is_ascii_symbol);
  text = replace_pairs(
      text, [](char32_t a, char32_t b) { return !is_digit(a) && is_period_or_comma(b); },
      space_around_second);
  text = replace_pairs(
      text, [](char32_t a, char32_t b) { return is_period_or_comma(a) && !is_digit(b); },
      space_around_first);
  return replace_pairs(
      text, [](char32_t a, char32_t b) { return is_digit(a) && b == U'-'; }, space_around_second);
}

std::u32string tokenize_13a(std::u32string_view line) {
  std::u32string text = replace_all(line, U"<skipped>", U"");
  text = replace_all(text, U"-\n", U"");
  text = replace_all(text, U"\n", U" ");
  text = replace_all(text, U"&quot;", U"\"");
  text = replace_all(text, U"&amp;", U"&");
  text = replace_all(text, U"&lt;", U"<");
  text = replace_all(text, U"&gt;", U">");
  return split_western(U" " + text + U" ");
}

std::u32string tokenize_international(std::u32string_view line) {
  std::u32string text = replace_pairs(
      line, [](char32_t a, char32_t b) { return !is_number(a) && is_punctuation(b); },
      space_around_second);
  text = replace_pairs(
      text, [](char32_t a, char32_t b) { return is_punctuation(a) && !is_number(b); },
      space_around_first);
  return space_characters(text, is_symbol);
}

// The ranges that sacreBLEU splits. The third stands for the planes beyond the first, which
// sacreBLEU means to name: as it is written there it covers U+2001 to U+2A6D, and so published
// scores have it; likewise the fourth.
bool is_chinese(char32_t c) {
  constexpr std::array<std::pair<char32_t, char32_t>, 21> kRanges = {{
      {0x3400, 0x4DB5}, {0x4E00, 0x9FBB}, {0x2001, 0x2A6D}, {0x2F81, 0x2FA1}, {0xF900, 0xFA2D},
      {0xFA30, 0xFA6A}, {0xFA70, 0xFAD9}, {0xFF00, 0xFFEF}, {0x2E80, 0x2EFF}, {0x3000, 0x303F},
      {0x31C0, 0x31EF}, {0x2F00, 0x2FDF}, {0x2FF0, 0x2FFF}, {0x3100, 0x312F}, {0x31A0, 0x31BF},
      {0xFE10, 0xFE1F}, {0xFE30, 0xFE4F}, {0x2600, 0x26FF}, {0x2700, 0x27BF}, {0x3200, 0x32FF},
      {0x3300, 0x33FF},
  }};
  for (const auto& [first, last] : kRanges) {
    if (c >= first && c <= last) return true;
  }
  return false;
}

std::u32string_view strip(std::u32string_view line) {
  while (!line.empty() && text::is_white_space(line.front())) line.remove_prefix(1);
  while (!line.empty() && text::is_white_space(line.back())) line.remove_suffix(1);
  return line;
}

std::u32string tokenize_zh(std::u32string_view line) {
  return split_western(space_characters(strip(line), is_chinese));
}

}  // namespace

std::string_view name_of(BleuTokenizer tokenizer) { return name_in(kNames, tokenizer); }

BleuTokenizer parse_tokenizer(std::string_view name) {
  return value_in(kNames, name, "BLEU, tokenizer");
}

std::u32string tokenize(std::u32string_view line, BleuTokenizer tokenizer) {
  switch (tokenizer) {
    case BleuTokenizer::v13a:
      return tokenize_13a(line);
    case BleuTokenizer::international:
      return tokenize_international(line);
    case BleuTokenizer::characters:
      return space_characters(line, [](char32_t) { return true; });
    case BleuTokenizer::zh:
      return tokenize_zh(line);
    case BleuTokenizer::none:
      return std::u32string(line);
  }
  fail(ErrorKind::failure, "BLEU: there is no tokenizer {}", static_cast<int>(tokenizer));
}

}  // namespace rapt::eval
