// Attention's forward pass, per target: online softmax over key tiles, for a piece of one
// sentence's queries and one head.
#if defined(RAPT_KERNELS_ATTENTION_FORWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_KERNELS_ATTENTION_FORWARD_INL_H_
#undef RAPT_KERNELS_ATTENTION_FORWARD_INL_H_
#else
#define RAPT_KERNELS_ATTENTION_FORWARD_INL_H_
#endif

#include "rapt/kernels/attention_plan.h"
#include "rapt/kernels/attention_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
struct ForwardScratch {
  ForwardScratch(Carver& carver, const AttentionArgs<T>& args, const TileCut& cut)
      : tile_rows(next_multiple(cut.query_tile, kLanes<T>)),
        keys(carver.take<T>(next_multiple(cut.key_tile, kPanel<T>) * args.Dk)),
        values(carver.take<T>(cut.key_tile * next_multiple(args.Dv, kLanes<T>))),
        scores(carver.take<T>(tile_rows * kScoreStride)),
        bias(carver.take<T>(args.bias == nullptr ? 0 : cut.query_tile * kScoreStride)),
        most(carver.take<T>(kMostParts * tile_rows)),
        total(carver.take<T>(kMostParts * tile_rows)),
        base(carver.take<T>(tile_rows)),
        before(carver.take<T>(tile_rows)),
        after(carver.take<T>(tile_rows)),
        tile_total(carver.take<T>(tile_rows)),
        words(carver.take<uint32_t>(kScoreStride + 128)) {}

  int64_t tile_rows;  // the queries of a tile in whole vectors and blocks
  T* keys;            // a key tile, transposed
  T* values;
  T* scores;  // queries of one tile x keys of one tile
  T* bias;
  T* most;        // of each query, (parts, tile_rows): its largest score so far, to base 2,
  T* total;       // and the sum of its weights relative to that
  T* base;        // of each query of one tile: what its scores are measured from,
  T* before;      // the factor that brings what was summed before up to date,
  T* after;       // the factor that makes a sum the output,
  T* tile_total;  // and the sum of its weights in this tile
  uint32_t* words;
};

// A piece of the queries of one sentence and head, in parts that each fill a tile. Sums of weighted
// values stand in the output from the first key tile on.
template <class T>
class ForwardPiece {
 public:
  ForwardPiece(const AttentionArgs<T>& args, const TileCut& cut, const ForwardItem& item,
               const ForwardScratch<T>& scratch, T* out, const HeadStrides& out_at,
               SoftmaxSum<T>* sums)
      : args_(args),
        cut_(cut),
        item_(item),
        scratch_(scratch),
        queries_(args.queries[static_cast<size_t>(item.b)]),
        keys_(args.keys[static_cast<size_t>(item.b)]),
        count_(cut.tiles(item.queries.end - item.queries.begin)),
        dropout_(args.dropout, item.h, scratch.words),
        out_(out + out_at.at(queries_, item.h)),
        ldo_(out_at.row),
        sums_(sums == nullptr ? nullptr : sums + queries_.row * args.H + item.h) {
    for (int64_t i = 0; i < count_; ++i) {
      const Range rows = cut.tile(item.queries.end - item.queries.begin, i);
      Part& part = parts_[i];
      part.queries = {item.queries.begin + rows.begin, item.queries.begin + rows.end};
      part.last_key = keys_by_position(args.mask, queries_, keys_, part.queries).end;
      part.most = scratch.most + i * scratch.tile_rows;
      part.total = scratch.total + i * scratch.tile_rows;
    }
  }

  void run() {
    std::fill(scratch_.most, scratch_.most + count_ * scratch_.tile_rows,
              -std::numeric_limits<T>::infinity());
    std::fill(scratch_.total, scratch_.total + count_ * scratch_.tile_rows, T(0));
    const Range seen = keys_by_position(args_.mask, queries_, keys_, item_.queries);
    for (int64_t first = seen.begin / cut_.key_tile * cut_.key_tile; first < seen.end;
         first += cut_.key_tile) {
      add_keys({first, std::min(first + cut_.key_tile, seen.end)});
    }
    for (int64_t i = 0; i < count_; ++i) {
      if (!parts_[i].finished) finish_alone(parts_[i]);
    }
  }

 private:
  struct Part {
    Range queries;     // counted in their sentence
    int64_t last_key;  // that some of them may see by position; one past it
    T* most;
    T* total;
    bool started = false, finished = false;
  };

  void pack(Range tile, Right<T>& keys, Right<T>& values) {
    const int64_t rows = tile.end - tile.begin, head = args_.key_head(item_.h);
    const T scale = static_cast<T>(args_.scale * std::numbers::log2e);
    const bool copy = item_.queries.end - item_.queries.begin > kCopyFrom;
    keys = pack_transposed(args_.k + args_.k_at.at(keys_, head, tile.begin), args_.k_at.row, rows,
                           args_.Dk, scale, scratch_.keys);
    values = pack_rows(args_.v + args_.v_at.at(keys_, head, tile.begin), args_.v_at.row, rows,
                       args_.Dv, copy, scratch_.values);
  }

  void add_keys(Range tile) {
    Right<T> keys{}, values{};
    bool packed = false;  // as soon as anybody sees them
    for (int64_t i = 0; i < count_; ++i) {
      Part& part = parts_[i];
      Tile scores = make_tile(args_, item_.b, item_.h, part.queries, tile);
      const Seen seen = seen_of(args_, scores);
      if (seen == Seen::none) continue;
      if (!packed) pack(tile, keys, values);
      packed = true;
      score_tile(args_, scores, seen, keys, scratch_.scores, scratch_.bias);
      weigh(scores, part);
      const bool last = part.last_key <= tile.end;
      if (last) finish(part);
      multiply(FixedLeft<T, kScoreStride>{scratch_.scores + scores.columns.begin},
               from_row(values, scores.columns.begin), scores.rows(),
               scores.columns.end - scores.columns.begin, args_.Dv,
               Result<T>{out_ + part.queries.begin * ldo_, ldo_, part.started, scratch_.before,
                         last ? scratch_.after : nullptr});
      part.started = true;
    }
  }

  // Scores become weights relative to each query's largest score so far.
  void weigh(const Tile& tile, const Part& part) {
    for (int64_t i = 0; i < tile.rows(); ++i)
      scratch_.base[i] = largest_score(tile, scratch_.scores + i * kScoreStride);
    rise(tile.rows(), part.most, scratch_.base, scratch_.before);
    for (int64_t i = 0; i < tile.rows(); ++i) {
      const DropoutRow drop = dropout_.row(queries_, keys_, tile, i);
      scratch_.tile_total[i] =
          weigh_row(tile, scratch_.scores + i * kScoreStride, scratch_.base[i], drop);
    }
    add_totals(tile.rows(), scratch_.before, scratch_.tile_total, part.total);
  }

  // One row's weights; returns their sum. Lane i of it adds up the keys i, i + kLanes, ... of the
  // tile.
  static T weigh_row(const Tile& tile, T* row, T base, const DropoutRow& drop) {
    const hn::ScalableTag<T> d;
    const auto from = hn::Set(d, base);
    auto sum = hn::Zero(d);
    for (int64_t j = tile.from; j < tile.to; j += kLanes<T>) {
      auto weight = exp2(d, hn::Sub(hn::LoadU(d, row + j), from));
      sum = hn::Add(sum, weight);
      if (drop.words != nullptr) weight = zero_if_dropped(d, drop, j, weight);
      hn::StoreU(weight, d, row + j);
    }
    return hn::GetLane(hn::SumOfLanes(d, sum));
  }

  // The factors that make a part's sums its outputs, and what the backward needs. A query that has
  // seen nothing gets zeros.
  void finish(Part& part) {
    const hn::ScalableTag<T> d;
    const auto kept = hn::Set(d, static_cast<T>(1 / (1 - args_.dropout.probability)));
    const int64_t rows = part.queries.end - part.queries.begin;
    for (int64_t i = 0; i < rows; i += kLanes<T>) {
      const auto sum = hn::Load(d, part.total + i);
      const auto empty = hn::Eq(sum, hn::Zero(d));
      hn::Store(hn::IfThenZeroElse(empty, hn::Div(kept, sum)), d, scratch_.after + i);
    }
    for (int64_t i = 0; i < rows && sums_ != nullptr; ++i)
      sums_[(part.queries.begin + i) * args_.H] = {part.most[i], part.total[i]};
    part.finished = true;
  }

  // A part whose last keys the matrices hide, or all of them.
  void finish_alone(Part& part) {
    finish(part);
    for (int64_t i = part.queries.begin; i < part.queries.end; ++i) {
      T* out = out_ + i * ldo_;
      const T factor = scratch_.after[i - part.queries.begin];
      for (int64_t c = 0; c < args_.Dv; ++c) out[c] = part.started ? factor * out[c] : T(0);
    }
  }

  const AttentionArgs<T>& args_;
  const TileCut& cut_;
  const ForwardItem& item_;
  const ForwardScratch<T>& scratch_;
  const Segment& queries_;
  const Segment& keys_;
  const int64_t count_;  // of parts
  DropoutOfHead dropout_;
  T* const out_;  // of the sentence's first query
  const int64_t ldo_;
  SoftmaxSum<T>* const sums_;  // of the sentence's first query
  Part parts_[kMostParts];
};

}  // namespace rapt::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
