// BLEU's tokenizers, by sacreBLEU's rules: what stands between white space afterwards is a token.
#pragma once

#include <string>
#include <string_view>

namespace rapt::eval {

enum class BleuTokenizer {
  v13a,           // mteval-v13a's, for Western languages: WMT's choice and the default
  international,  // mteval-v14's: splits at Unicode's punctuation and symbols
  characters,     // each character
  zh,             // each Chinese character, v13a's rules for the rest
  none,           // the text is tokenized already
};

// sacreBLEU's name of a tokenizer: 13a, intl, char, zh, none.
std::string_view name_of(BleuTokenizer tokenizer);

// Throws Error (usage) for another name.
BleuTokenizer parse_tokenizer(std::string_view name);

// The line with white space between its tokens.
std::u32string tokenize(std::u32string_view line, BleuTokenizer tokenizer);

}  // namespace rapt::eval
