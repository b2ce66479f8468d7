// What a SentencePiece model file (.model) holds. For sources only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rapt/base/limits.h"
#include "rapt/text/subwords.h"

namespace rapt::text {

struct NormaliserSettings {
  std::string charsmap;  // the precompiled rules: a trie, then the strings that it leads to
  bool add_dummy_prefix = true;
  bool remove_extra_white_space = true;
  bool escape_white_space = true;
};

struct SubwordFile {
  struct Piece {
    std::string text;
    float score = 0;
    PieceKind kind = PieceKind::normal;
  };
  std::vector<Piece> pieces;
  SubwordModel model = SubwordModel::unigram;
  bool byte_fallback = false;
  bool white_space_as_suffix = false;
  std::string unknown_surface = " \u2047 ";
  std::string pad = "<pad>", start = "<s>", end = "</s>";  // spellings of the control pieces
  NormaliserSettings normaliser;
  NormaliserSettings denormaliser;  // applied to decoded text if it has rules
};

// Reads a file's bytes; `name` stands in errors. Throws Error (data) where it is no such file: cut
// off, broken, without pieces, with more than Limits::vocabulary of them, a piece that is empty or
// too long, a score that is not finite, an unknown kind or type.
SubwordFile parse_subword_file(std::string_view bytes, const std::string& name,
                               const Limits& limits);

}  // namespace rapt::text
