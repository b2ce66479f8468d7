// How SentencePiece makes text ready: rules of replacement, then white space. For sources only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rapt/text/byte_trie.h"
#include "rapt/text/subword_file.h"

namespace rapt::text {

inline constexpr std::string_view kSpaceMark = "\u2581";

// Text made ready, with the byte of the input that each of its bytes comes from, and one entry more
// for the end.
struct Normalised {
  std::string text;
  std::vector<size_t> origin;
};

class Normaliser {
 public:
  // `keep`: strings that pass as they are, whatever their values. Throws Error (data), with `name`,
  // where the rules are broken: the trie leads outside itself or outside the strings.
  Normaliser(const NormaliserSettings& settings, bool white_space_as_suffix, ByteTrie keep,
             const std::string& name);

  // Any bytes; what is not UTF-8 becomes U+FFFD, a byte at a time.
  Normalised normalise(std::string_view input) const;

 private:
  struct Step {
    std::string_view text;  // what the first `length` bytes of the input become
    size_t length;
  };
  Step first(std::string_view input) const;
  Step by_rules(std::string_view input) const;

  bool add_dummy_prefix_, remove_extra_white_space_, as_suffix_;
  std::string_view space_;  // what a space becomes
  std::vector<uint32_t> units_;
  std::string strings_;  // each ends with a NUL
  ByteTrie keep_;
};

// The length of the UTF-8 character that `text` starts with, as SentencePiece cuts text that is not
// checked: by the first byte alone, at most to the end. At least one byte of text.
size_t character_length(std::string_view text);

// Whether `text` starts with a valid character, and its length; 1 where it does not.
bool starts_valid(std::string_view text, size_t& length);

}  // namespace rapt::text
