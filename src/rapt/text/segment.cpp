#include "rapt/text/segment.h"

#include <algorithm>
#include <limits>

#include "rapt/base/check.h"
#include "rapt/text/normaliser.h"
#include "rapt/text/words.h"

namespace rapt::text {
namespace {

// "<0x41>" is 65; -1 for what is no byte piece.
int byte_of(std::string_view piece) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return -1;
  const size_t high = kDigits.find(piece[3]), low = kDigits.find(piece[4]);
  if (high == std::string_view::npos || low == std::string_view::npos) return -1;
  return static_cast<int>(16 * high + low);
}

void add_piece(PieceTable& table, const SubwordFile& file, int32_t id, const std::string& where) {
  const SubwordFile::Piece& piece = file.pieces[static_cast<size_t>(id)];
  const bool is_text = piece.kind == PieceKind::normal || piece.kind == PieceKind::user_defined ||
                       piece.kind == PieceKind::unused;
  const auto [first, is_new] = (is_text ? table.texts : table.reserved).emplace(piece.text, id);
  if (!is_new)
    fail(ErrorKind::data, "{}: {} stands at piece {} already; each may stand once", where,
         quote_word(piece.text), first->second);
  if (piece.kind == PieceKind::unknown) {
    if (table.unknown >= 0)
      fail(ErrorKind::data, "{}: expected one unknown piece, piece {} is one already", where,
           table.unknown);
    table.unknown = id;
  }
  if (piece.kind == PieceKind::byte) {
    const int byte = byte_of(piece.text);
    if (byte < 0 || !file.byte_fallback)
      fail(ErrorKind::data, "{}: {}", where,
           byte < 0 ? "expected a byte piece such as <0x41>, got " + quote_word(piece.text)
                    : "byte pieces belong to models with byte_fallback");
    table.byte_ids[static_cast<size_t>(byte)] = id;
  }
}

bool is_user_defined(const PieceTable& table, int32_t id) {
  return table.pieces[static_cast<size_t>(id)].kind == PieceKind::user_defined;
}

bool is_unused(const PieceTable& table, int32_t id) {
  return table.pieces[static_cast<size_t>(id)].kind == PieceKind::unused;
}

}  // namespace

PieceTable::PieceTable(const SubwordFile& file, const std::string& name) : pieces(file.pieces) {
  byte_ids.fill(-1);
  // The highest score starts above 0 by a hair, as the library's does.
  lowest_score = std::numeric_limits<float>::max();
  highest_score = std::numeric_limits<float>::min();
  std::vector<std::pair<std::string_view, int32_t>> all, user;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    add_piece(*this, file, id, fmt::format("{}, piece {}", name, id));
    if (pieces[i].kind != PieceKind::normal) continue;
    lowest_score = std::min(lowest_score, pieces[i].score);
    highest_score = std::max(highest_score, pieces[i].score);
  }
  if (unknown < 0) fail(ErrorKind::data, "{}: expected an unknown piece, got none", name);
  const auto missing = std::find(byte_ids.begin(), byte_ids.end(), -1);
  if (file.byte_fallback && missing != byte_ids.end())
    fail(ErrorKind::data, "{}: expected a piece for each of 256 bytes, byte {} has none", name,
         missing - byte_ids.begin());
  for (const auto& [text, id] : texts) {
    all.emplace_back(text, id);
    if (is_user_defined(*this, id)) user.emplace_back(text, id);
  }
  user_defined_trie = ByteTrie(std::move(user));
  if (file.model == SubwordModel::unigram) text_trie = ByteTrie(std::move(all));
}

int32_t PieceTable::id_of(std::string_view text) const {
  const auto found = texts.find(text);
  return found == texts.end() ? unknown : found->second;
}

// The likeliest cut (Kudo 2018, "Subword regularization"), by Viterbi's algorithm. Of equally
// likely ways to a place, the one whose last piece starts first stays, as in the library; sums are
// rounded where its sums are.
std::vector<Segment> cut_unigram(const PieceTable& table, std::string_view text) {
  struct Best {  // the best way to a place: its score, and its last piece
    float score = 0;
    int32_t id = -1;
    size_t begin = 0;
    bool reached = false;
  };
  constexpr float kUnknownPenalty = 10;
  const float unknown_score = table.lowest_score - kUnknownPenalty;
  std::vector<Best> best(text.size() + 1);
  const auto offer = [&](size_t begin, size_t end, int32_t id, auto score) {
    if (best[end].reached && !(score > best[end].score)) return;
    best[end] = {static_cast<float>(score), id, begin, true};
  };
  for (size_t begin = 0; begin < text.size();) {
    const std::string_view rest = text.substr(begin);
    const size_t character = character_length(rest);
    const float before = best[begin].score;
    bool known = false;
    table.text_trie.prefixes(rest, [&](size_t length, int32_t id) {
      if (is_unused(table, id)) return;
      // A piece of the user's own wins over any cut of it.
      const double score = is_user_defined(table, id)
                               ? static_cast<float>(length) * table.highest_score - 0.1
                               : table.pieces[static_cast<size_t>(id)].score;
      offer(begin, begin + length, id, score + before);
      known = known || length == character;
    });
    if (!known) offer(begin, begin + character, table.unknown, unknown_score + before);
    begin += character;
  }
  std::vector<Segment> segments;
  for (size_t end = text.size(); end > 0; end = best[end].begin)
    segments.push_back({end - best[end].begin, best[end].id});
  std::reverse(segments.begin(), segments.end());
  return segments;
}

// Each space mark starts a word.
std::vector<Segment> cut_words(const PieceTable& table, std::string_view text) {
  std::vector<Segment> segments;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = begin;
    do {
      end += character_length(text.substr(end));
    } while (end < text.size() && !text.substr(end).starts_with(kSpaceMark));
    segments.push_back({end - begin, table.id_of(text.substr(begin, end - begin))});
    begin = end;
  }
  return segments;
}

std::vector<Segment> cut_characters(const PieceTable& table, std::string_view text) {
  std::vector<Segment> segments;
  while (!text.empty()) {
    size_t length = table.user_defined_trie.longest_prefix(text);
    if (length == 0) length = character_length(text);
    segments.push_back({length, table.id_of(text.substr(0, length))});
    text.remove_prefix(length);
  }
  return segments;
}

}  // namespace rapt::text
