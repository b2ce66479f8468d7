#include "rapt/text/subwords.h"

#include <utility>

#include "rapt/base/check.h"
#include "rapt/base/file.h"
#include "rapt/base/names.h"
#include "rapt/base/utf8.h"
#include "rapt/text/normaliser.h"
#include "rapt/text/segment.h"

namespace rapt::text {
namespace {

constexpr int64_t kLargestFile = 1 << 30;  // bytes

constexpr NameTable<SubwordModel, 4> kModels = {{{SubwordModel::unigram, "unigram"},
                                                 {SubwordModel::bpe, "bpe"},
                                                 {SubwordModel::words, "word"},
                                                 {SubwordModel::characters, "char"}}};

SpecialIds special_ids(const PieceTable& table, const SubwordFile& file) {
  const auto control = [&](const std::string& spelling) -> std::optional<int32_t> {
    const auto found = table.reserved.find(spelling);
    if (found == table.reserved.end() ||
        table.pieces[static_cast<size_t>(found->second)].kind != PieceKind::control)
      return std::nullopt;
    return found->second;
  };
  return {.pad = control(file.pad),
          .start = control(file.start),
          .end = control(file.end),
          .unk = table.unknown};
}

std::string replace_space_marks(std::string_view text) {
  std::string result;
  while (true) {
    const size_t at = text.find(kSpaceMark);
    result += text.substr(0, at);
    if (at == std::string_view::npos) return result;
    result += ' ';
    text.remove_prefix(at + kSpaceMark.size());
  }
}

// Appends bytes, with U+FFFD for each that belongs to no character.
void append_bytes(std::string& text, std::string_view bytes) {
  while (!bytes.empty()) {
    size_t length = 0;
    text += starts_valid(bytes, length) ? bytes.substr(0, length) : kReplacementCharacter;
    bytes.remove_prefix(length);
  }
}

}  // namespace

std::string_view name_of(SubwordModel model) { return name_in(kModels, model); }

SubwordModel parse_subword_model(std::string_view name) {
  return value_in(kModels, name, "subwords, type of model");
}

struct Subwords::State {
  State(std::string all, const std::string& name, const Limits& limits)
      : bytes(std::move(all)),
        file(parse_subword_file(bytes, name, limits)),
        table(file, name),
        normaliser(file.normaliser, file.white_space_as_suffix, table.user_defined_trie, name),
        special(special_ids(table, file)) {
    if (!file.denormaliser.charsmap.empty())
      denormaliser.emplace(file.denormaliser, false, ByteTrie(), name);
    byte_values.assign(file.pieces.size(), -1);
    for (size_t byte = 0; byte < 256; ++byte) {
      if (table.byte_ids[byte] >= 0)
        byte_values[static_cast<size_t>(table.byte_ids[byte])] = static_cast<int16_t>(byte);
    }
  }

  std::vector<Segment> segments(std::string_view text) const {
    switch (file.model) {
      case SubwordModel::unigram:
        return cut_unigram(table, text);
      case SubwordModel::bpe:
        return cut_bpe(table, text);
      case SubwordModel::words:
        return cut_words(table, text);
      case SubwordModel::characters:
        return cut_characters(table, text);
    }
    fail(ErrorKind::failure, "subwords: there is no model {}", static_cast<int>(file.model));
  }

  const SubwordFile::Piece& piece(int64_t id) const {
    if (id < 0 || std::cmp_greater_equal(id, file.pieces.size()))
      fail(ErrorKind::data, "subwords: expected an id below {}, got {}", file.pieces.size(), id);
    return file.pieces[static_cast<size_t>(id)];
  }

  std::string bytes;
  SubwordFile file;
  PieceTable table;
  Normaliser normaliser;
  std::optional<Normaliser> denormaliser;
  SpecialIds special;
  std::vector<int16_t> byte_values;  // by id; -1: no byte piece
};

Subwords Subwords::read(const std::filesystem::path& path, const Limits& limits) {
  std::string bytes =
      with_error_kind(ErrorKind::data, "", [&] { return read_file(path, kLargestFile); });
  return parse(std::move(bytes), path.string(), limits);
}

Subwords Subwords::parse(std::string bytes, const std::string& name, const Limits& limits) {
  return Subwords(std::make_shared<const State>(std::move(bytes), name, limits));
}

const std::string& Subwords::bytes() const { return state_->bytes; }
int64_t Subwords::size() const { return static_cast<int64_t>(state_->file.pieces.size()); }
const std::string& Subwords::piece(int64_t id) const { return state_->piece(id).text; }
PieceKind Subwords::kind(int64_t id) const { return state_->piece(id).kind; }
const SpecialIds& Subwords::special() const { return state_->special; }

std::optional<int32_t> Subwords::find(std::string_view piece) const {
  for (const auto* pieces : {&state_->table.reserved, &state_->table.texts}) {
    if (const auto found = pieces->find(piece); found != pieces->end()) return found->second;
  }
  return std::nullopt;
}

std::vector<Subword> Subwords::cut(std::string_view line) const {
  const Normalised ready = state_->normaliser.normalise(line);
  std::vector<Subword> subwords;
  size_t at = 0;
  bool after_unknown = false;
  for (const Segment& segment : state_->segments(ready.text)) {
    const std::string_view text = std::string_view(ready.text).substr(at, segment.length);
    const size_t begin = ready.origin[at], end = ready.origin[at + segment.length];
    const bool unknown = segment.id == state_->table.unknown;
    if (unknown && state_->file.byte_fallback) {
      for (const char& byte : text) {
        const int32_t id = state_->table.byte_ids[static_cast<unsigned char>(byte)];
        subwords.push_back({piece(id), id, begin, &byte == &text.back() ? end : begin});
      }
    } else if (unknown && after_unknown) {
      subwords.back().piece += text;
      subwords.back().end = end;
    } else {
      subwords.push_back({std::string(text), segment.id, begin, end});
    }
    after_unknown = unknown;
    at += segment.length;
  }
  return subwords;
}

std::vector<int32_t> Subwords::encode(std::string_view line) const {
  std::vector<int32_t> ids;
  for (const Subword& subword : cut(line)) ids.push_back(subword.id);
  return ids;
}

// Text from pieces, one after the other.
class Subwords::Decoder {
 public:
  explicit Decoder(const State& state)
      : state_(state),
        drops_space_(state.file.normaliser.add_dummy_prefix ||
                     state.file.normaliser.remove_extra_white_space) {}

  void add(int32_t id) {
    add(id, state_.piece(id).kind == PieceKind::unknown ? state_.file.unknown_surface
                                                        : state_.piece(id).text);
  }

  // `spelling`: the piece's, or the text that an unknown piece stands for.
  void add(int32_t id, std::string_view spelling) {
    const SubwordFile::Piece& piece = state_.piece(id);
    if (piece.kind == PieceKind::byte) {
      bytes_ += static_cast<char>(state_.byte_values[static_cast<size_t>(id)]);
      return;
    }
    end_bytes();
    if (dropped_ || !text_.empty()) at_start_ = false;
    dropped_ = false;
    if (piece.kind == PieceKind::control) return;
    if (piece.kind == PieceKind::unknown) {
      text_ += spelling;
      return;
    }
    // The space before the first word is not the text's; where extra ones go, all before it go.
    if (at_start_ && drops_space_ && spelling.starts_with(kSpaceMark)) {
      spelling.remove_prefix(kSpaceMark.size());
      dropped_ = !state_.file.normaliser.remove_extra_white_space;
    }
    text_ += replace_space_marks(spelling);
  }

  std::string text() {
    end_bytes();
    return state_.denormaliser ? state_.denormaliser->normalise(text_).text : text_;
  }

 private:
  void end_bytes() {
    append_bytes(text_, bytes_);
    bytes_.clear();
  }

  const State& state_;
  bool drops_space_, at_start_ = true, dropped_ = false;
  std::string text_;
  std::string bytes_;  // of byte pieces that stand in a row
};

std::string Subwords::decode(std::span<const int32_t> ids) const {
  Decoder decoder(*state_);
  for (const int32_t id : ids) decoder.add(id);
  return decoder.text();
}

std::string Subwords::decode_pieces(std::span<const std::string_view> pieces) const {
  Decoder decoder(*state_);
  for (const std::string_view piece : pieces) {
    const std::optional<int32_t> id = find(piece);
    if (id && id != state_->table.unknown) {
      decoder.add(*id);
    } else {
      decoder.add(state_->table.unknown, piece);
    }
  }
  return decoder.text();
}

std::string Subwords::normalise(std::string_view line) const {
  return state_->normaliser.normalise(line).text;
}

}  // namespace rapt::text
