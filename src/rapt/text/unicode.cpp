#include "rapt/text/unicode.h"

#include <utf8proc.h>

#include <algorithm>

namespace rapt::text {
namespace {

constexpr char32_t kCapitalSigma = 0x3A3, kSmallSigma = 0x3C3, kFinalSigma = 0x3C2;
constexpr char32_t kCapitalIWithDot = 0x130, kDotAbove = 0x307;

utf8proc_int32_t code(char32_t c) { return static_cast<utf8proc_int32_t>(c); }

// The first letter of Unicode's general category.
char category(char32_t c) { return utf8proc_category_string(code(c))[0]; }

// Unicode's Cased: letters of a case, and those that only look like it (U+00AA, Roman numerals).
bool is_cased(char32_t c) {
  const utf8proc_category_t category = utf8proc_category(code(c));
  return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL ||
         category == UTF8PROC_CATEGORY_LT || utf8proc_tolower(code(c)) != code(c) ||
         utf8proc_toupper(code(c)) != code(c);
}

// Unicode's Case_Ignorable: marks, format characters, modifiers, and punctuation inside of words.
bool is_case_ignorable(char32_t c) {
  constexpr char32_t kInsideWords[] = {0x27,   0x2E,   0x3A,   0xB7,   0x387,  0x55F,
                                       0x5F4,  0x2018, 0x2019, 0x2024, 0x2027, 0xFE13,
                                       0xFE52, 0xFE55, 0xFF07, 0xFF0E, 0xFF1A};
  switch (utf8proc_category(code(c))) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return std::find(std::begin(kInsideWords), std::end(kInsideWords), c) !=
             std::end(kInsideWords);
  }
}

// Unicode's Final_Sigma: a cased letter stands before it and none after it, but for characters that
// case ignores.
bool ends_word(std::u32string_view text, size_t at) {
  size_t before = at;
  while (before > 0 && is_case_ignorable(text[before - 1])) --before;
  if (before == 0 || !is_cased(text[before - 1])) return false;
  size_t after = at + 1;
  while (after < text.size() && is_case_ignorable(text[after])) ++after;
  return after == text.size() || !is_cased(text[after]);
}

}  // namespace

bool is_number(char32_t c) { return category(c) == 'N'; }
bool is_punctuation(char32_t c) { return category(c) == 'P'; }
bool is_symbol(char32_t c) { return category(c) == 'S'; }

bool is_white_space(char32_t c) {
  if (c <= 0x20) return c == 0x20 || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

std::u32string lower_case(std::u32string_view text) {
  std::u32string lower;
  lower.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == kCapitalSigma) {
      lower += ends_word(text, i) ? kFinalSigma : kSmallSigma;
    } else if (text[i] == kCapitalIWithDot) {
      lower += {U'i', kDotAbove};
    } else {
      lower += static_cast<char32_t>(utf8proc_tolower(code(text[i])));
    }
  }
  return lower;
}

std::vector<std::u32string_view> split_white_space(std::u32string_view text) {
  std::vector<std::u32string_view> parts;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && !is_white_space(text[i])) continue;
    if (i > begin) parts.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  return parts;
}

}  // namespace rapt::text
