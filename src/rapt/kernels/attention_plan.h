// How attention's work is cut into pieces that threads share. The cuts follow the sizes alone, and
// no bit of a result depends on them.
#pragma once

#include <cstdint>
#include <span>

#include "rapt/base/check.h"
#include "rapt/kernels/attention_sizes.h"
#include "rapt/kernels/attention_split.h"

namespace rapt::kernels {

// From this many queries on, the rows of a key tile are copied side by side first.
inline constexpr int64_t kCopyFrom = 64;

// Tiles of queries in a piece of the forward pass, strips where it runs on bf16 tiles, and the
// pieces that are enough for many threads.
inline constexpr int64_t kMostParts = 40, kMostStrips = 35;
inline constexpr int64_t kEnoughPieces = 64;

// The backward on bf16 tiles: keys of a tile, tiles that it keeps packed at a time, and queries.
inline constexpr int64_t kGradientKeys = 128, kKeyTilesOfBlock = 4, kGradientQueries = 64;

// Tiles of `query_tile` queries and `key_tile` keys; scratch is made for `most_queries` queries at
// once.
struct TileCut {
  int64_t key_tile = 0, query_tile = 0, most_queries = 0;
  int parts = 0;  // of a number on bf16 tiles, where long sentences run; 0: nowhere

  // Tile `i` of `count` queries, of about equal sizes.
  int64_t tiles(int64_t count) const { return pieces(count, query_tile); }
  Range tile(int64_t count, int64_t i) const { return piece(count, tiles(count), i); }
};

// Slots of thread_scratch(): of the thread that plans, and of each thread that works.
inline constexpr int kWideSlot = 13, kPlanSlot = 14, kWorkSlot = 15;

// Throws Error where the arguments contradict each other.
template <class T>
void check_attention(const AttentionArgs<T>& args) {
  RAPT_ASSERT(args.queries.size() == args.keys.size());
  RAPT_ASSERT(args.H >= 0 && args.Dk >= 0 && args.Dv >= 0 && args.key_tile >= 0 &&
              args.query_tile >= 0);
  RAPT_ASSERT(args.Hk >= 0 && (args.H == 0 || args.H % args.key_heads() == 0));
  RAPT_ASSERT(args.dropout.probability >= 0 && args.dropout.probability < 1);
}

template <class T>
TileCut forward_cut(const AttentionArgs<T>& args) {
  TileCut cut;
  cut.key_tile = args.key_tile > 0 ? std::min(args.key_tile, kMaxKeyTile) : kMaxKeyTile;
  cut.parts = parts_on_tiles(args);
  cut.query_tile = args.query_tile > 0 ? std::min<int64_t>(args.query_tile, 1120)
                   : args.mask.causal  ? 28
                                       : 56;
  // About 1120 rows share a transposed key tile, or 280 where that would leave few pieces.
  int64_t queries = 0;
  for (const Segment& sentence : args.queries) queries += sentence.count;
  const int64_t most =
      std::clamp<int64_t>(queries * args.H / kEnoughPieces, 280, 1120) / cut.query_tile;
  cut.most_queries = std::clamp<int64_t>(most, 1, kMostParts) * cut.query_tile;
  static_assert(kMostStrips * x86::kPanel >= 1120);
  return cut;
}

template <class T>
TileCut backward_cut(const AttentionArgs<T>& args) {
  TileCut cut = forward_cut(args);
  cut.most_queries = 0;
  for (const Segment& queries : args.queries)
    cut.most_queries = std::max(cut.most_queries, queries.count);
  return cut;
}

// How many of `items` pieces of work one thread takes at a time: enough that handing them out is
// cheap.
template <class T>
int64_t items_at_once(const AttentionArgs<T>& args, int64_t items) {
  constexpr double kEnough = 2e6;  // multiply-adds, about 20 us
  constexpr double kPacking = 32;  // queries that a key could meet while it is packed
  double work = 0;
  for (size_t b = 0; b < args.queries.size(); ++b) {
    const auto queries = static_cast<double>(args.queries[b].count);
    if (queries > 0) work += (queries + kPacking) * static_cast<double>(args.keys[b].count);
  }
  work *= static_cast<double>(args.H * (args.Dk + args.Dv));
  if (work < kEnough) return std::max<int64_t>(items, 1);
  return std::clamp<int64_t>(static_cast<int64_t>(static_cast<double>(items) * kEnough / work), 1,
                             items);
}

// One head of one sentence; in the forward pass, a piece of its queries.
struct ForwardItem {
  int64_t b, h;
  Range queries;
};

// The forward pass: each sentence's queries in pieces of at most `most_queries`. Items are numbered
// by sentence, then by piece from the last (the longest where attention is causal), then by head.
class ForwardPlan {
 public:
  // `first_item` has room for a number a sentence and one more.
  ForwardPlan(std::span<const Segment> queries, int64_t heads, int64_t most_queries,
              int64_t* first_item);

  int64_t items() const { return first_item_[queries_.size()]; }
  ForwardItem item(int64_t index) const;

 private:
  std::span<const Segment> queries_;
  int64_t heads_, most_queries_;
  int64_t* first_item_;
};

// The backward pass: tasks that may run at the same time. An item is a key head of a sentence
// (numbered b * key heads + head) with its query heads. Items whose bias gradients meet are one
// task, in rising order.
class BackwardPlan {
 public:
  // `group[item * query_heads + i]` is the bias's gradient_group of an item's i-th query head; null
  // where no bias wants a gradient. `numbers` has room for numbers_needed().
  BackwardPlan(int64_t items, int64_t query_heads, const int64_t* group, int64_t* numbers);
  static int64_t numbers_needed(int64_t items, int64_t query_heads) {
    return (3 + query_heads) * items;
  }

  int64_t tasks() const { return tasks_; }
  // Positions in order() of the items of a task.
  Range items_of(int64_t task) const {
    return {task == 0 ? 0 : end_of_task_[task - 1], end_of_task_[task]};
  }
  int64_t item(int64_t position) const { return order_[position]; }

 private:
  int64_t tasks_ = 0;
  int64_t* order_;
  int64_t* end_of_task_;
};

}  // namespace rapt::kernels
