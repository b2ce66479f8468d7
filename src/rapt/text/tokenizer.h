// A tokenizer: lines as ids, and back, whether its tokens are words or subwords.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "rapt/text/subwords.h"
#include "rapt/text/vocabulary.h"

namespace rapt::text {

class Tokenizer {
 public:
  Tokenizer() = default;  // an empty vocabulary
  Tokenizer(Vocabulary words) : tokens_(std::move(words)) {}
  Tokenizer(Subwords subwords) : tokens_(std::move(subwords)) {}

  // The ids of a line, without start and end. A word that a vocabulary without <unk> lacks is an
  // Error (data) that names it and `where` ("train.en:7").
  std::vector<int32_t> encode(std::string_view line, std::string_view where) const;

  // The text of `ids`, without control entries. Throws Error (data) on an id outside [0, size()).
  std::string decode(std::span<const int32_t> ids) const;

  int64_t size() const;
  const SpecialIds& special() const;

  // How a token is spelt. Throws Error (data) on an id outside [0, size()).
  const std::string& word(int64_t id) const;

  // What tokens are called in messages: "words" or "pieces".
  std::string_view unit() const;

  // One of them is there, the other null.
  const Vocabulary* vocabulary() const { return std::get_if<Vocabulary>(&tokens_); }
  const Subwords* subwords() const { return std::get_if<Subwords>(&tokens_); }

 private:
  std::variant<Vocabulary, Subwords> tokens_;
};

}  // namespace rapt::text
