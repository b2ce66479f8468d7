#include "rapt/text/subword_file.h"

#include <cmath>
#include <utility>

#include "rapt/base/check.h"
#include "rapt/base/utf8.h"
#include "rapt/text/protobuf.h"
#include "rapt/text/words.h"

namespace rapt::text {
namespace {

constexpr size_t kLongestPiece = 1 << 16;  // bytes

PieceKind kind_of(int32_t value, const std::string& where) {
  switch (value) {
    case 1:
      return PieceKind::normal;
    case 2:
      return PieceKind::unknown;
    case 3:
      return PieceKind::control;
    case 4:
      return PieceKind::user_defined;
    case 5:
      return PieceKind::unused;
    case 6:
      return PieceKind::byte;
    default:
      fail(ErrorKind::data, "{}: expected a kind of piece from 1 to 6, got {}", where, value);
  }
}

SubwordModel model_of(int32_t value, const std::string& where) {
  switch (value) {
    case 1:
      return SubwordModel::unigram;
    case 2:
      return SubwordModel::bpe;
    case 3:
      return SubwordModel::words;
    case 4:
      return SubwordModel::characters;
    default:
      fail(ErrorKind::data, "{}: expected a type of model from 1 to 4, got {}", where, value);
  }
}

void require_utf8(std::string_view text, const std::string& where) {
  if (const auto wrong = first_invalid_utf8(text))
    fail(ErrorKind::data, "{}: invalid UTF-8 at byte {}", where, *wrong);
}

SubwordFile::Piece read_piece(std::string_view message, const std::string& where) {
  SubwordFile::Piece piece;
  ProtobufReader reader(message, where);
  for (ProtobufField field; reader.next(field);) {
    if (field.id == 1) piece.text = field.text(where);
    if (field.id == 2) piece.score = field.real(where);
    if (field.id == 3) piece.kind = kind_of(field.integer(where), where);
  }
  if (piece.text.empty()) fail(ErrorKind::data, "{}: the piece is empty", where);
  if (piece.text.size() > kLongestPiece)
    fail(ErrorKind::data, "{}: the piece has {} bytes, at most {} are taken", where,
         piece.text.size(), kLongestPiece);
  require_utf8(piece.text, where);
  if (!std::isfinite(piece.score))
    fail(ErrorKind::data, "{}: the score of {} is not finite", where, quote_word(piece.text));
  return piece;
}

void read_trainer(std::string_view message, const std::string& where, SubwordFile& file) {
  ProtobufReader reader(message, where);
  for (ProtobufField field; reader.next(field);) {
    switch (field.id) {
      case 3:
        file.model = model_of(field.integer(where), where);
        break;
      case 24:
        file.white_space_as_suffix = field.boolean(where);
        break;
      case 35:
        file.byte_fallback = field.boolean(where);
        break;
      case 44:
        file.unknown_surface = field.text(where);
        require_utf8(file.unknown_surface, where);
        break;
      case 46:
        file.start = field.text(where);
        break;
      case 47:
        file.end = field.text(where);
        break;
      case 48:
        file.pad = field.text(where);
        break;
      default:  // how it was trained: nothing that changes what it does
        break;
    }
  }
}

void read_normaliser(std::string_view message, const std::string& where,
                     NormaliserSettings& settings) {
  ProtobufReader reader(message, where);
  for (ProtobufField field; reader.next(field);) {
    if (field.id == 2) settings.charsmap = field.text(where);
    if (field.id == 3) settings.add_dummy_prefix = field.boolean(where);
    if (field.id == 4) settings.remove_extra_white_space = field.boolean(where);
    if (field.id == 5) settings.escape_white_space = field.boolean(where);
  }
}

}  // namespace

SubwordFile parse_subword_file(std::string_view bytes, const std::string& name,
                               const Limits& limits) {
  SubwordFile file;
  ProtobufReader reader(bytes, name + ", read as a SentencePiece model");
  for (ProtobufField field; reader.next(field);) {
    switch (field.id) {
      case 1:
        if (std::cmp_greater_equal(file.pieces.size(), limits.vocabulary))
          fail(ErrorKind::data, "{}: more than {} pieces", name, limits.vocabulary);
        file.pieces.push_back(
            read_piece(field.text(name), fmt::format("{}, piece {}", name, file.pieces.size())));
        break;
      case 2:
        read_trainer(field.text(name), name + ", trainer_spec", file);
        break;
      case 3:
        read_normaliser(field.text(name), name + ", normalizer_spec", file.normaliser);
        break;
      case 5:
        read_normaliser(field.text(name), name + ", denormalizer_spec", file.denormaliser);
        break;
      default:
        break;
    }
  }
  if (file.pieces.empty())
    fail(ErrorKind::data, "{}: expected a SentencePiece model, got a file without pieces", name);
  return file;
}

}  // namespace rapt::text
