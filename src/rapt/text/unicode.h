// What Unicode says about a character: its category, its lower case, whether it is white space.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rapt::text {

// Unicode's general categories N, P and S; none of them for what is no character or has no meaning
// yet.
bool is_number(char32_t c);
bool is_punctuation(char32_t c);
bool is_symbol(char32_t c);

// White space as Python's str.split() knows it: Unicode's, and the four ASCII separators U+001C to
// U+001F.
bool is_white_space(char32_t c);

// Lower case with Unicode's full mappings, the sigma at the end of a word included.
std::u32string lower_case(std::u32string_view text);

// What stands between white space, in order, as views of `text`.
std::vector<std::u32string_view> split_white_space(std::u32string_view text);

}  // namespace rapt::text
