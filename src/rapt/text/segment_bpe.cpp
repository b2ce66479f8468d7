#include <queue>
#include <unordered_map>
#include <utility>

#include "rapt/text/normaliser.h"
#include "rapt/text/segment.h"

namespace rapt::text {
namespace {

// Two neighbouring symbols that are a piece together.
struct Pair {
  int left = 0, right = 0;  // symbols
  float score = 0;
  size_t size = 0;  // bytes; stale once the symbols have grown
};

struct IsWorse {  // the better score comes first, then the one further left
  bool operator()(const Pair& a, const Pair& b) const {
    return a.score < b.score || (a.score == b.score && a.left > b.left);
  }
};

// A stretch of text, merged so far; empty once it belongs to its left neighbour.
struct Symbol {
  int previous = -1, next = -1;
  bool frozen = false;  // a piece of the user's own, never merged
  std::string_view text{};
};

// Byte-pair encoding (Sennrich et al. 2016, "Neural machine translation of rare words with subword
// units"): merges the pair with the best score until none is left.
class Merger {
 public:
  Merger(const PieceTable& table, std::string_view text) : table_(table) {
    while (!text.empty()) {
      const size_t kept = table.user_defined_trie.longest_prefix(text);
      const size_t length = kept > 0 ? kept : character_length(text);
      const auto index = static_cast<int>(symbols_.size());
      symbols_.push_back({index - 1, index + 1, kept > 0, text.substr(0, length)});
      text.remove_prefix(length);
    }
    if (!symbols_.empty()) symbols_.back().next = -1;
    for (int i = 1; std::cmp_less(i, symbols_.size()); ++i) add_pair(i - 1, i);
  }

  void merge_all() {
    while (!pairs_.empty()) {
      const Pair pair = pairs_.top();
      pairs_.pop();
      Symbol &left = at(pair.left), &right = at(pair.right);
      if (left.text.empty() || right.text.empty() ||
          left.text.size() + right.text.size() != pair.size)
        continue;
      left.text = std::string_view(left.text.data(), pair.size);
      left.next = right.next;
      if (right.next >= 0) at(right.next).previous = pair.left;
      right.text = {};
      add_pair(left.previous, pair.left);
      add_pair(pair.left, left.next);
    }
  }

  std::vector<Segment> segments() const {
    std::vector<Segment> segments;
    if (symbols_.empty()) return segments;
    for (int i = 0; i != -1; i = symbols_[static_cast<size_t>(i)].next)
      append(symbols_[static_cast<size_t>(i)].text, segments);
    return segments;
  }

 private:
  Symbol& at(int i) { return symbols_[static_cast<size_t>(i)]; }

  void add_pair(int left, int right) {
    if (left == -1 || right == -1 || at(left).frozen || at(right).frozen) return;
    const std::string_view text(at(left).text.data(), at(left).text.size() + at(right).text.size());
    const auto found = table_.texts.find(text);
    if (found == table_.texts.end()) return;
    const SubwordFile::Piece& piece = table_.pieces[static_cast<size_t>(found->second)];
    pairs_.push({left, right, piece.score, text.size()});
    if (piece.kind == PieceKind::unused) halves_[text] = {at(left).text, at(right).text};
  }

  // A piece that is unused is taken apart again, the way it was merged.
  void append(std::string_view text, std::vector<Segment>& segments) const {
    std::vector<std::string_view> open = {text};
    while (!open.empty()) {
      const std::string_view part = open.back();
      open.pop_back();
      const int32_t id = table_.id_of(part);
      const auto halves = table_.pieces[static_cast<size_t>(id)].kind == PieceKind::unused
                              ? halves_.find(part)
                              : halves_.end();
      if (halves == halves_.end()) {
        segments.push_back({part.size(), id});
      } else {
        open.push_back(halves->second.second);
        open.push_back(halves->second.first);
      }
    }
  }

  const PieceTable& table_;
  std::vector<Symbol> symbols_;
  std::priority_queue<Pair, std::vector<Pair>, IsWorse> pairs_;
  std::unordered_map<std::string_view, std::pair<std::string_view, std::string_view>> halves_;
};

}  // namespace

std::vector<Segment> cut_bpe(const PieceTable& table, std::string_view text) {
  Merger merger(table, text);
  merger.merge_all();
  return merger.segments();
}

}  // namespace rapt::text
