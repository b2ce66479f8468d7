#include "rapt/text/subword_file.h"

#include <array>
#include <cmath>
#include <utility>

#include "rapt/base/check.h"
#include "rapt/base/utf8.h"
#include "rapt/text/protobuf.h"
#include "rapt/text/words.h"

namespace rapt::text {
namespace {

constexpr size_t kLongestPiece = 1 << 16;  // bytes

// In the order of the format's numbers, which start at 1.
constexpr std::array kKinds = {PieceKind::normal,       PieceKind::unknown, PieceKind::control,
                               PieceKind::user_defined, PieceKind::unused,  PieceKind::byte};
constexpr std::array kModels = {SubwordModel::unigram, SubwordModel::bpe, SubwordModel::words,
                                SubwordModel::characters};

template <class T, size_t N>
T by_number(const std::array<T, N>& all, int32_t number, const char* what,
            const std::string& where) {
  if (number < 1 || std::cmp_greater(number, N))
    fail(ErrorKind::data, "{}: expected {} from 1 to {}, got {}", where, what, N, number);
  return all[static_cast<size_t>(number - 1)];
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
    if (field.id == 3)
      piece.kind = by_number(kKinds, field.integer(where), "a kind of piece", where);
  }
  if (piece.text.empty()) fail(ErrorKind::data, "{}: expected a piece, got an empty one", where);
  if (piece.text.size() > kLongestPiece)
    fail(ErrorKind::data, "{}: expected a piece of at most {} bytes, got {}", where, kLongestPiece,
         piece.text.size());
  require_utf8(piece.text, where);
  if (!std::isfinite(piece.score))
    fail(ErrorKind::data, "{}: expected a number as the score of {}, got one that is not finite",
         where, quote_word(piece.text));
  return piece;
}

void read_trainer(std::string_view message, const std::string& where, SubwordFile& file) {
  ProtobufReader reader(message, where);
  for (ProtobufField field; reader.next(field);) {
    switch (field.id) {
      case 3:
        file.model = by_number(kModels, field.integer(where), "a type of model", where);
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
          fail(ErrorKind::data, "{}: got more than {} pieces, the most that are taken", name,
               limits.vocabulary);
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
