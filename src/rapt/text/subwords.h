// Subwords: text as pieces of a SentencePiece model (Kudo and Richardson 2018, "SentencePiece: a
// simple and language independent subword tokenizer"), and back.
//
// A model file (.model) says how text is made ready (its normaliser), which pieces there are, and
// how text is cut into them: the likeliest cut (unigram), merges in order (BPE), words, or
// characters. Ids and texts are those of the SentencePiece library, but for one rule of ours: text
// never turns into control pieces or byte pieces that it spells.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rapt/base/limits.h"
#include "rapt/text/vocabulary.h"

namespace rapt::text {

enum class SubwordModel { unigram, bpe, words, characters };

// SentencePiece's name of a type: unigram, bpe, word, char.
std::string_view name_of(SubwordModel model);
SubwordModel parse_subword_model(std::string_view name);  // throws Error (usage) for another name

// What a piece of a model is: text; the unknown piece; a control piece, which no text becomes; text
// that is never cut nor normalised; one of 256 bytes, for characters without a piece; unused.
enum class PieceKind { normal, unknown, control, user_defined, byte, unused };

// A piece of a line, and which bytes of the line it stands for. Of a character that became several
// byte pieces, the last has them all and the others none.
struct Subword {
  std::string piece;  // as the model spells it; of an unknown piece, the text (made ready)
  int32_t id = 0;
  size_t begin = 0, end = 0;
};

class Subwords {
 public:
  // Throws Error (data) where the file cannot be read or is no model: cut off, broken, without an
  // unknown piece or with two, pieces that stand twice or are not UTF-8, byte pieces that are
  // missing, normaliser rules that lead astray.
  static Subwords read(const std::filesystem::path& path, const Limits& limits = {});

  // The same from a file's bytes; `name` stands in errors.
  static Subwords parse(std::string bytes, const std::string& name, const Limits& limits = {});

  // The file that the model was read from, byte by byte.
  const std::string& bytes() const;

  int64_t size() const;

  // The spelling and kind of a piece. Throw Error (data) on an id outside [0, size()).
  const std::string& piece(int64_t id) const;
  PieceKind kind(int64_t id) const;

  // The id of a piece by its spelling, control pieces included: for configurations, not for text.
  std::optional<int32_t> find(std::string_view piece) const;

  // The ids of padding, start, end and the unknown piece, where the model has them.
  const SpecialIds& special() const;

  // Cuts a line into pieces, neighbouring unknown characters as one. Any bytes are taken: what is
  // not UTF-8 is read as U+FFFD. Nothing in an empty line, nor (with most models) in a blank one.
  // Throws Error (data) where a model's rules make the line grow without measure.
  std::vector<Subword> cut(std::string_view line) const;

  // The same, ids alone.
  std::vector<int32_t> encode(std::string_view line) const;

  // The text of `ids`, without control pieces; bytes that form no character become U+FFFD, each.
  // decode(encode(x)) is normalise(x) read with spaces for their marks, where no piece is unknown.
  // Throws Error (data) on an id outside [0, size()).
  std::string decode(std::span<const int32_t> ids) const;

  // The text of pieces by their spellings, as cut() gives them; a spelling that no piece has is
  // text that was unknown and stands as it is.
  std::string decode_pieces(std::span<const std::string_view> pieces) const;

  // The line as it is cut: after the model's rules, with U+2581 for spaces in most models.
  std::string normalise(std::string_view line) const;

 private:
  struct State;
  class Decoder;
  explicit Subwords(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace rapt::text
