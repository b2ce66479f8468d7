// Attention's forward pass, per target: online softmax over key tiles, for a piece of one
// sentence's queries and one head.
#if defined(RAPT_KERNELS_ATTENTION_FORWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_KERNELS_ATTENTION_FORWARD_INL_H_
#undef RAPT_KERNELS_ATTENTION_FORWARD_INL_H_
#else
#define RAPT_KERNELS_ATTENTION_FORWARD_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>

#include "rapt/kernels/attention_plan.h"
#include "rapt/kernels/attention_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
struct ForwardScratch {
  ForwardScratch(Carver& carver, const AttentionArgs<T>& args, const TileCut& cut)
      : width(next_multiple(args.Dv, kLanes<T>)),
        tile_rows(next_multiple(cut.query_tile, kLanes<T>)),
        keys(carver.take<T>(next_multiple(cut.key_tile, kPanel<T>) * args.Dk)),
        values(carver.take<T>(cut.key_tile * width)),
        scores(carver.take<T>(cut.query_tile * kScoreStride)),
        bias(carver.take<T>(args.bias == nullptr ? 0 : cut.query_tile * kScoreStride)),
        sums(carver.take<T>(cut.most_queries * width)),
        most(carver.take<T>(pieces(cut.most_queries, cut.query_tile) * tile_rows)),
        total(carver.take<T>(pieces(cut.most_queries, cut.query_tile) * tile_rows)),
        base(carver.take<T>(tile_rows)),
        before(carver.take<T>(tile_rows)),
        tile_total(carver.take<T>(tile_rows)),
        words(carver.take<uint32_t>(kScoreStride + 128)) {}

  int64_t width;      // Dv in whole vectors
  int64_t tile_rows;  // the queries of a tile in whole vectors
  T* keys;            // a key tile, transposed
  T* values;
  T* scores;  // queries of one tile x keys of one tile
  T* bias;
  T* sums;        // weighted values of all queries of the piece: (queries, width)
  T* most;        // of each query, (tiles, tile_rows): its largest score so far, to base 2,
  T* total;       // and the sum of its weights relative to that
  T* base;        // of each query of one tile: what its scores are measured from,
  T* before;      // the factor that brings what was summed before up to date,
  T* tile_total;  // and the sum of its weights in this tile
  uint32_t* words;
};

// A piece of the queries of one sentence and head.
template <class T>
class ForwardPiece {
 public:
  ForwardPiece(const AttentionArgs<T>& args, const TileCut& cut, const ForwardItem& item,
               const ForwardScratch<T>& scratch)
      : args_(args),
        cut_(cut),
        item_(item),
        scratch_(scratch),
        queries_(args.queries[static_cast<size_t>(item.b)]),
        keys_(args.keys[static_cast<size_t>(item.b)]),
        count_(item.queries.end - item.queries.begin),
        parts_(pieces(count_, cut.query_tile)),
        dropout_(args.dropout, item.h, scratch.words) {}

  void run(T* out, int64_t ldo, T* log_sum) {
    std::fill(scratch_.sums, scratch_.sums + count_ * scratch_.width, T(0));
    std::fill(scratch_.most, scratch_.most + parts_ * scratch_.tile_rows,
              -std::numeric_limits<T>::infinity());
    std::fill(scratch_.total, scratch_.total + parts_ * scratch_.tile_rows, T(0));
    const Range seen = keys_by_position(args_.mask, queries_, keys_, item_.queries);
    for (int64_t first = seen.begin / cut_.key_tile * cut_.key_tile; first < seen.end;
         first += cut_.key_tile) {
      add_keys({first, std::min(first + cut_.key_tile, seen.end)});
    }
    for (int64_t part = 0; part < parts_; ++part) write(part, out, ldo, log_sum);
  }

 private:
  Range part(int64_t i) const { return piece(count_, parts_, i); }

  void add_keys(Range tile) {
    const int64_t rows = tile.end - tile.begin, first = keys_.row + tile.begin;
    const T scale = static_cast<T>(args_.scale * std::numbers::log2e);
    const Right<T> keys = pack_transposed(args_.k + first * args_.ldk + item_.h * args_.Dk,
                                          args_.ldk, {0, rows}, args_.Dk, scale, scratch_.keys);
    const Right<T> values = pack_rows(args_.v + first * args_.ldv + item_.h * args_.Dv, args_.ldv,
                                      rows, args_.Dv, count_ > kCopyFrom, scratch_.values);
    for (int64_t i = 0; i < parts_; ++i) {
      const Range queries{item_.queries.begin + part(i).begin, item_.queries.begin + part(i).end};
      const Tile scores = make_tile(args_, item_.b, item_.h, queries, tile);
      if (!score_tile(args_, scores, keys, scratch_.scores, scratch_.bias)) continue;
      weigh(scores, i);
      multiply(FixedLeft<T, kScoreStride>{scratch_.scores + scores.columns.begin},
               from_row(values, scores.columns.begin), scores.rows(),
               scores.columns.end - scores.columns.begin, scratch_.width / kLanes<T>,
               Result<T>{scratch_.sums + part(i).begin * scratch_.width, scratch_.width, true,
                         scratch_.before});
    }
  }

  // Scores become weights relative to each query's largest score so far. A query that has seen
  // nothing yet is measured from 0: its weights are zeros.
  void weigh(const Tile& tile, int64_t part) {
    const hn::ScalableTag<T> d;
    const auto nothing = hn::Set(d, -std::numeric_limits<T>::infinity());
    T* most = scratch_.most + part * scratch_.tile_rows;
    T* total = scratch_.total + part * scratch_.tile_rows;
    for (int64_t i = 0; i < tile.rows(); ++i)
      scratch_.base[i] = largest(tile, scratch_.scores + i * kScoreStride);
    for (int64_t i = 0; i < tile.rows(); i += kLanes<T>) {
      const auto old = hn::Load(d, most + i);
      const auto now = hn::Max(old, hn::Load(d, scratch_.base + i));
      const auto base = hn::IfThenZeroElse(hn::Eq(now, nothing), now);
      hn::Store(now, d, most + i);
      hn::Store(base, d, scratch_.base + i);
      hn::Store(exp2(d, hn::Sub(old, base)), d, scratch_.before + i);
    }
    for (int64_t i = 0; i < tile.rows(); ++i) {
      const DropoutRow drop = dropout_.row(queries_, keys_, tile, i);
      scratch_.tile_total[i] =
          weigh_row(tile, scratch_.scores + i * kScoreStride, scratch_.base[i], drop);
    }
    for (int64_t i = 0; i < tile.rows(); i += kLanes<T>) {
      const auto before = hn::Load(d, scratch_.before + i);
      hn::Store(hn::MulAdd(hn::Load(d, total + i), before, hn::Load(d, scratch_.tile_total + i)), d,
                total + i);
    }
  }

  static T largest(const Tile& tile, const T* row) {
    const hn::ScalableTag<T> d;
    auto most = hn::LoadU(d, row + tile.from);
    for (int64_t j = tile.from + kLanes<T>; j < tile.to; j += kLanes<T>)
      most = hn::Max(most, hn::LoadU(d, row + j));
    return hn::GetLane(hn::MaxOfLanes(d, most));
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

  // The outputs of one part of the queries: zeros where nothing was seen.
  void write(int64_t i, T* out, int64_t ldo, T* log_sum) {
    const hn::ScalableTag<T> d;
    T* most = scratch_.most + i * scratch_.tile_rows;
    const T* total = scratch_.total + i * scratch_.tile_rows;
    const auto kept = hn::Set(d, static_cast<T>(1 / (1 - args_.dropout.probability)));
    const int64_t first = queries_.row + item_.queries.begin + part(i).begin,
                  rows = part(i).end - part(i).begin;
    for (int64_t row = 0; row < rows; row += kLanes<T>) {
      const auto sum = hn::Load(d, total + row);
      const auto empty = hn::Eq(sum, hn::Zero(d));
      hn::Store(hn::IfThenZeroElse(empty, hn::Div(kept, sum)), d, scratch_.before + row);
      if (log_sum == nullptr) continue;
      const auto largest = hn::Load(d, most + row);
      const auto log = hn::MulAdd(largest, hn::Set(d, std::numbers::ln2_v<T>), hn::Log(d, sum));
      hn::Store(hn::IfThenElse(empty, hn::Set(d, -std::numeric_limits<T>::infinity()), log), d,
                most + row);
    }
    for (int64_t row = 0; row < rows; ++row) {
      if (log_sum != nullptr) log_sum[(first + row) * args_.H + item_.h] = most[row];
      write_row(scratch_.sums + (part(i).begin + row) * scratch_.width, args_.Dv,
                scratch_.before[row], false, out + (first + row) * ldo + item_.h * args_.Dv);
    }
  }

  const AttentionArgs<T>& args_;
  const TileCut& cut_;
  const ForwardItem& item_;
  const ForwardScratch<T>& scratch_;
  const Segment& queries_;
  const Segment& keys_;
  const int64_t count_, parts_;
  DropoutOfHead dropout_;
};

}  // namespace rapt::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
