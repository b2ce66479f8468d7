// Labels as characters: decoded, made harmless, and measured. For sources only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rapt::show {

// The characters of a label. What would act instead of being seen becomes visible: control
// characters their pictures (U+2400 on), separators of lines and directions, and bytes that are not
// UTF-8, U+FFFD.
std::u32string printable(std::string_view label);

// The columns that a terminal gives a character: 0 for marks on the one before, 2 for the scripts
// of East Asia and for pictures, else 1 (after Unicode's UAX #11).
int columns_of(char32_t character);
int64_t columns_of(std::u32string_view text);

// The text in at most `columns` columns; a text that was cut ends in U+2026.
std::u32string shortened(const std::u32string& text, int64_t columns);

}  // namespace rapt::show
