// Misspelt names: how far a word is from those that are known, and which is the nearest.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace rapt {

// Edits from `a` to `b`: letters inserted, deleted, changed, and neighbours swapped (optimal string
// alignment).
size_t edits(std::string_view a, std::string_view b);

// The entry of `known` with the fewest edits from `word`; empty where none has at most a third of
// the word's letters, but at least one.
std::string nearest(std::string_view word, std::span<const std::string_view> known);

}  // namespace rapt
