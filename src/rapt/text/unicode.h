// What Unicode says about a character: its class, its lower case, whether it is white space.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rapt::text {

// The first letter of Unicode's general category.
enum class CharacterClass { letter, mark, number, punctuation, symbol, separator, other };

// The class of a character; `other` also for what is no character or has no meaning yet.
CharacterClass character_class(char32_t c);

// White space as Python's str.split() knows it: Unicode's, and the four ASCII separators U+001C to
// U+001F.
bool is_white_space(char32_t c);

// Lower case with Unicode's full mappings, the sigma at the end of a word included.
std::u32string lower_case(std::u32string_view text);

// What stands between white space, in order, as views of `text`.
std::vector<std::u32string_view> split_white_space(std::u32string_view text);

}  // namespace rapt::text
