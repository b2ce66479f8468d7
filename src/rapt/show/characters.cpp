#include "rapt/show/characters.h"

#include <algorithm>
#include <iterator>

#include "rapt/base/utf8.h"

namespace rapt::show {
namespace {

struct Range {
  char32_t first, last;
};

constexpr Range kZero[] = {
    {0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD}, {0x0610, 0x061A},
    {0x064B, 0x065F}, {0x0E31, 0x0E31}, {0x0E34, 0x0E3A}, {0x0E47, 0x0E4E},
    {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF}, {0x200B, 0x200D}, {0x20D0, 0x20FF},
    {0x3099, 0x309A}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xE0100, 0xE01EF}};

constexpr Range kTwo[] = {
    {0x1100, 0x115F},   {0x231A, 0x231B},   {0x23E9, 0x23EC},   {0x2614, 0x2615},
    {0x2E80, 0x303E},   {0x3041, 0x33FF},   {0x3400, 0x4DBF},   {0x4E00, 0xA4CF},
    {0xA960, 0xA97C},   {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},
    {0xFF01, 0xFF60},   {0xFFE0, 0xFFE6},   {0x16FE0, 0x18AFF}, {0x1B000, 0x1B2FF},
    {0x1F300, 0x1F64F}, {0x1F680, 0x1F6FF}, {0x1F900, 0x1FAFF}, {0x20000, 0x3FFFD}};

template <size_t N>
bool within(const Range (&ranges)[N], char32_t character) {
  const Range* const range =
      std::upper_bound(std::begin(ranges), std::end(ranges), character,
                       [](char32_t value, const Range& entry) { return value < entry.first; });
  return range != std::begin(ranges) && character <= std::prev(range)->last;
}

// Lines, directions and other commands that are not controls of ASCII.
bool is_command(char32_t c) {
  return (c >= 0x80 && c <= 0x9F) || c == 0x200E || c == 0x200F || (c >= 0x2028 && c <= 0x202E) ||
         (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF || c == 0xFFFE || c == 0xFFFF;
}

char32_t visible(char32_t c) {
  if (c < 0x20) return 0x2400 + c;
  if (c == 0x7F) return 0x2421;
  return is_command(c) ? 0xFFFD : c;
}

}  // namespace

std::u32string printable(std::string_view label) {
  int64_t replaced = 0;
  std::u32string text = decode_utf8(replace_invalid_utf8(label, replaced));
  std::transform(text.begin(), text.end(), text.begin(), visible);
  return text;
}

int columns_of(char32_t character) {
  if (character < 0x300) return 1;
  return within(kZero, character) ? 0 : within(kTwo, character) ? 2 : 1;
}

int64_t columns_of(std::u32string_view text) {
  int64_t columns = 0;
  for (const char32_t character : text) columns += columns_of(character);
  return columns;
}

std::u32string shortened(const std::u32string& text, int64_t columns) {
  if (columns_of(text) <= columns) return text;
  std::u32string kept;
  int64_t used = 1;  // the ellipsis
  for (const char32_t character : text) {
    used += columns_of(character);
    if (used > columns) break;
    kept += character;
  }
  return columns > 0 ? kept + U'\u2026' : U"";
}

}  // namespace rapt::show
