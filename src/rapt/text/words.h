// Lines as words: what stands between spaces and tabs.
//
// Only the ASCII space and the tab separate words. Everything else belongs to a word, also a
// no-break space, an ideographic space and control characters: nothing is cleaned silently.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rapt::text {

// The words of a line, in order, as views of it; none in an empty or blank line.
std::vector<std::string_view> split_words(std::string_view line);

// The words with one space between them.
std::string join_words(std::span<const std::string_view> words);
std::string join_words(std::span<const std::string> words);

// A word as messages show it: in quotes, control characters escaped as \x1b, and cut after some
// forty bytes.
std::string quote_word(std::string_view word);

}  // namespace rapt::text
