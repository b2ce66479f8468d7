// How normalised text is cut into the pieces of a model. For sources only.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rapt/text/byte_trie.h"
#include "rapt/text/subword_file.h"

namespace rapt::text {

// The pieces of a file, ready to be looked up.
struct PieceTable {
  // `pieces` must outlive the table. Throws Error (data) as Subwords::parse does.
  PieceTable(const SubwordFile& file, const std::string& name);

  // The id of a text: a piece that is text, or the unknown piece.
  int32_t id_of(std::string_view text) const;

  const std::vector<SubwordFile::Piece>& pieces;
  std::unordered_map<std::string_view, int32_t> texts;     // what text can become
  std::unordered_map<std::string_view, int32_t> reserved;  // unknown, control, bytes
  ByteTrie text_trie, user_defined_trie;
  std::array<int32_t, 256> byte_ids{};  // where the model has them
  int32_t unknown = -1;
  float lowest_score = 0, highest_score = 0;  // of normal pieces
};

// A stretch of the text and its piece.
struct Segment {
  size_t length = 0;  // in bytes
  int32_t id = 0;
};

// Each covers the text with segments, in order.
std::vector<Segment> cut_unigram(const PieceTable& table, std::string_view text);
std::vector<Segment> cut_bpe(const PieceTable& table, std::string_view text);
std::vector<Segment> cut_words(const PieceTable& table, std::string_view text);
std::vector<Segment> cut_characters(const PieceTable& table, std::string_view text);

}  // namespace rapt::text
