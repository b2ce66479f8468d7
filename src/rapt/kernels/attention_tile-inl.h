// What attention's forward and backward share, per target: tiles of scores with their masks, biases
// and dropout.
#if defined(RAPT_KERNELS_ATTENTION_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_KERNELS_ATTENTION_TILE_INL_H_
#undef RAPT_KERNELS_ATTENTION_TILE_INL_H_
#else
#define RAPT_KERNELS_ATTENTION_TILE_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numbers>

#include "rapt/kernels/attention_operands-inl.h"
#include "rapt/kernels/attention_sizes.h"
#include "rapt/kernels/exp2-inl.h"
#include "rapt/kernels/philox-inl.h"
#include "rapt/kernels/small_matmul-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Queries x keys [keys.begin, keys.end) of a key tile. Columns count from the tile's first key,
// whole vectors from `from` to `to` are worked on, and rows lie kScoreStride apart.
struct Tile {
  int64_t b, h;
  Range queries;      // counted in their sentence
  int64_t first_key;  // of the tile, counted in its sentence
  Range columns;      // that some of the queries may see by position
  int64_t from, to;

  int64_t rows() const { return queries.end - queries.begin; }
};

template <class T>
Tile make_tile(const AttentionArgs<T>& args, int64_t b, int64_t h, Range queries, Range keys) {
  const Range seen =
      intersect(keys, keys_by_position(args.mask, args.queries[static_cast<size_t>(b)],
                                       args.keys[static_cast<size_t>(b)], queries));
  const Range columns{seen.begin - keys.begin, seen.end - keys.begin};
  return {b,
          h,
          queries,
          keys.begin,
          columns,
          columns.begin / kPanel<T> * kPanel<T>,
          next_multiple(columns.end, kLanes<T>)};
}

inline ScoreTile score_tile_of(const Tile& tile) {
  return {tile.b,
          tile.h,
          tile.queries.begin,
          tile.first_key + tile.columns.begin,
          tile.rows(),
          tile.columns.end - tile.columns.begin};
}

// Whether the scores of a tile can be seen: none, some, or all of them (padding columns excepted).
enum class Seen { none, some, all };

inline const uint8_t* keep_row(const KeepMatrix& matrix, const Tile& tile, const Segment& keys,
                               int64_t row) {
  return matrix.keep + (matrix.offset_by_key_row ? keys.row : tile.b * matrix.stride_b) +
         tile.h * matrix.stride_h + (tile.queries.begin + row) * matrix.stride_q + tile.first_key;
}

template <class T>
Seen seen_by_matrices(const AttentionArgs<T>& args, const Tile& tile) {
  bool all = true;
  for (const KeepMatrix& matrix : args.mask.matrices) {
    const int64_t rows = matrix.stride_q == 0 ? 1 : tile.rows();
    bool any = false;
    for (int64_t i = 0; i < rows; ++i) {
      const uint8_t* keep = keep_row(matrix, tile, args.keys[static_cast<size_t>(tile.b)], i);
      uint8_t some = 0, hidden = 0;
      for (int64_t j = tile.columns.begin; j < tile.columns.end; ++j) {
        some = static_cast<uint8_t>(some | keep[j]);
        hidden = static_cast<uint8_t>(hidden | (keep[j] == 0));
      }
      any = any || some != 0;
      all = all && hidden == 0;
    }
    if (!any) return Seen::none;
  }
  return all ? Seen::all : Seen::some;
}

// What of a tile can be seen, by position and by the matrices; its columns end where no query sees
// any more of them.
template <class T>
Seen seen_of(const AttentionArgs<T>& args, Tile& tile) {
  for (const KeepMatrix& matrix : args.mask.matrices) {
    if (matrix.stride_q != 0) continue;
    const uint8_t* keep = keep_row(matrix, tile, args.keys[static_cast<size_t>(tile.b)], 0);
    Range& columns = tile.columns;
    while (!columns.empty() && keep[columns.begin] == 0) ++columns.begin;
    while (!columns.empty() && keep[columns.end - 1] == 0) --columns.end;
  }
  if (tile.columns.empty()) return Seen::none;
  tile.from = tile.columns.begin / kPanel<T> * kPanel<T>;
  tile.to = next_multiple(tile.columns.end, kLanes<T>);
  return seen_by_matrices(args, tile);
}

// Scores of columns outside [seen.begin, seen.end) become minus infinity.
template <class T>
HWY_INLINE void hide_outside(T* scores, int64_t from, int64_t to, Range seen) {
  const hn::ScalableTag<T> d;
  const auto hidden = hn::Set(d, -std::numeric_limits<T>::infinity());
  const auto lanes = hn::Iota(d, T(0));  // from a number that varies it would go through memory
  const auto first = hn::Set(d, static_cast<T>(seen.begin)),
             end = hn::Set(d, static_cast<T>(seen.end));
  const auto hide = [&](int64_t begin, int64_t stop) HWY_ATTR {
    for (int64_t j = begin; j < stop; j += kLanes<T>) {
      const auto column = hn::Add(lanes, hn::Set(d, static_cast<T>(j)));
      const auto inside = hn::And(hn::Ge(column, first), hn::Lt(column, end));
      hn::StoreU(hn::IfThenElse(inside, hn::LoadU(d, scores + j), hidden), d, scores + j);
    }
  };
  hide(from, std::min(to, seen.begin));
  hide(std::max(from, seen.end / kLanes<T> * kLanes<T>), to);
}

template <class T>
void hide_by_matrices(const AttentionArgs<T>& args, const Tile& tile, T* scores) {
  for (const KeepMatrix& matrix : args.mask.matrices) {
    for (int64_t i = 0; i < tile.rows(); ++i) {
      const uint8_t* keep = keep_row(matrix, tile, args.keys[static_cast<size_t>(tile.b)], i);
      T* row = scores + i * kScoreStride;
      for (int64_t j = tile.columns.begin; j < tile.columns.end; ++j) {
        row[j] = keep[j] != 0 ? row[j] : -std::numeric_limits<T>::infinity();
      }
    }
  }
}

// Adds the bias (in natural units) to scores that are logarithms to base 2.
template <class T>
void add_bias(const AttentionArgs<T>& args, const Tile& tile, T* scores, T* bias) {
  const hn::ScalableTag<T> d;
  for (int64_t i = 0; i < tile.rows(); ++i) {
    std::fill(bias + i * kScoreStride + tile.from, bias + i * kScoreStride + tile.to, T(0));
  }
  args.bias->add(score_tile_of(tile), bias + tile.columns.begin, kScoreStride);
  const auto unit = hn::Set(d, std::numbers::log2e_v<T>);
  const auto hidden = hn::Set(d, -std::numeric_limits<T>::infinity());
  // The least number times log2(e) would become minus infinity, which hides.
  const auto least = hn::Set(d, std::numeric_limits<T>::lowest() / T(1.5));
  for (int64_t i = 0; i < tile.rows(); ++i) {
    T* row = scores + i * kScoreStride;
    const T* extra = bias + i * kScoreStride;
    for (int64_t j = tile.from; j < tile.to; j += kLanes<T>) {
      const auto given = hn::LoadU(d, extra + j);
      const auto low = hn::And(hn::Lt(given, least), hn::Ne(given, hidden));
      const auto term = hn::IfThenElse(low, least, given);
      hn::StoreU(hn::MulAdd(unit, term, hn::LoadU(d, row + j)), d, row + j);
    }
  }
}

// From the products of queries and keys, times scale * log2(e), to scores as logarithms to base 2,
// minus infinity where a query may not see a key. `seen` is the tile's and not none.
template <class T>
void finish_scores(const AttentionArgs<T>& args, const Tile& tile, Seen seen, T* scores, T* bias) {
  const Segment& queries = args.queries[static_cast<size_t>(tile.b)];
  if (args.bias != nullptr) add_bias(args, tile, scores, bias);
  const auto columns_of = [&](int64_t i) {
    const Range row = keys_by_position(args.mask, queries, args.keys[static_cast<size_t>(tile.b)],
                                       tile.queries.begin + i);
    return intersect({row.begin - tile.first_key, row.end - tile.first_key}, tile.columns);
  };
  // Both ends rise from row to row.
  if (columns_of(tile.rows() - 1).begin > tile.from || columns_of(0).end < tile.to) {
    for (int64_t i = 0; i < tile.rows(); ++i)
      hide_outside(scores + i * kScoreStride, tile.from, tile.to, columns_of(i));
  }
  if (seen == Seen::some) hide_by_matrices(args, tile, scores);
}

// The scores of a tile. `keys` are packed, times scale * log2(e).
template <class T>
void score_tile(const AttentionArgs<T>& args, const Tile& tile, Seen seen, const Right<T>& keys,
                T* scores, T* bias) {
  const Segment& queries = args.queries[static_cast<size_t>(tile.b)];
  const StridedLeft<T> q{args.q + args.q_at.at(queries, tile.h, tile.queries.begin), args.q_at.row};
  multiply(q, from_column(keys, tile.from), tile.rows(), args.Dk, tile.to - tile.from,
           Result<T>{scores + tile.from, kScoreStride});
  finish_scores(args, tile, seen, scores, bias);
}

// The queries of a tile as the left operand of bf16 tiles: times scale * log2(e) where their parts
// make an f32. `copy` has room for them. False if a number has no parts.
inline bool pack_queries(const AttentionArgs<float>& args, const Segment& queries, int64_t h,
                         Range rows, int parts, float* copy, std::byte* to) {
  const float* q = args.q + args.q_at.at(queries, h, rows.begin);
  x86::Unpacked operand{.from = q,
                        .ld = args.q_at.row,
                        .stored = x86::Stored::by_outer,
                        .left = true,
                        .outer = rows.end - rows.begin,
                        .inner = args.Dk,
                        .parts = parts,
                        .to = to};
  if (parts == x86::kExactParts) {
    const float scale = static_cast<float>(args.scale * std::numbers::log2e);
    for (int64_t i = 0; i < operand.outer; ++i) {
      for (int64_t c = 0; c < args.Dk; ++c)
        copy[i * args.Dk + c] = scale * q[i * args.q_at.row + c];
    }
    operand.from = copy;
    operand.ld = args.Dk;
  }
  return x86::pack(operand);
}

// Products of packed queries and keys become the scores of a tile.
inline void finish_split(const AttentionArgs<float>& args, const Tile& tile, Seen seen, int parts,
                         float* scores, float* bias) {
  if (parts == 1) {
    const hn::ScalableTag<float> d;
    const auto scale = hn::Set(d, static_cast<float>(args.scale * std::numbers::log2e));
    for (int64_t i = 0; i < tile.rows(); ++i) {
      float* row = scores + i * kScoreStride;
      for (int64_t j = tile.from; j < tile.to; j += kLanes<float>)
        hn::StoreU(hn::Mul(scale, hn::LoadU(d, row + j)), d, row + j);
    }
  }
  finish_scores(args, tile, seen, scores, bias);
}

// The largest score of a row of a tile.
template <class T>
T largest_score(const Tile& tile, const T* row) {
  const hn::ScalableTag<T> d;
  auto most = hn::LoadU(d, row + tile.from), other = most;  // two chains
  int64_t j = tile.from + kLanes<T>;
  for (; j + kLanes<T> < tile.to; j += 2 * kLanes<T>) {
    most = hn::Max(most, hn::LoadU(d, row + j));
    other = hn::Max(other, hn::LoadU(d, row + j + kLanes<T>));
  }
  if (j < tile.to) most = hn::Max(most, hn::LoadU(d, row + j));
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(most, other)));
}

// Online softmax over tiles, a number for each of `rows` queries in whole vectors. `base` comes in
// as the largest score in a tile: `most` becomes the largest so far, `base` what scores are
// measured from (0 where nothing was seen yet, so that weights are zeros), and `before` the factor
// that brings what was summed before up to date.
template <class T>
void rise(int64_t rows, T* most, T* base, T* before) {
  const hn::ScalableTag<T> d;
  const auto nothing = hn::Set(d, -std::numeric_limits<T>::infinity());
  for (int64_t i = 0; i < rows; i += kLanes<T>) {
    const auto old = hn::Load(d, most + i);
    const auto now = hn::Max(old, hn::Load(d, base + i));
    const auto from = hn::IfThenZeroElse(hn::Eq(now, nothing), now);
    hn::Store(now, d, most + i);
    hn::Store(from, d, base + i);
    hn::Store(exp2(d, hn::Sub(old, from)), d, before + i);
  }
}

// Adds the weights' sums in a tile to those before.
template <class T>
void add_totals(int64_t rows, const T* before, const T* of_tile, T* total) {
  const hn::ScalableTag<T> d;
  for (int64_t i = 0; i < rows; i += kLanes<T>) {
    hn::Store(hn::MulAdd(hn::Load(d, total + i), hn::Load(d, before + i), hn::Load(d, of_tile + i)),
              d, total + i);
  }
}

// The random words of a row of a tile, by column; null where nothing is dropped.
struct DropoutRow {
  uint32_t threshold = 0;  // elements whose word is below it are dropped
  const uint32_t* words = nullptr;
};

// Dropout of one head.
class DropoutOfHead {
 public:
  // `words` has room for a row of a tile and 128 words more.
  DropoutOfHead(const Dropout& dropout, int64_t h, uint32_t* words) : words_(words) {
    if (dropout.probability == 0) return;
    on_ = true;
    key_ = philox_key_of_head(dropout.key, h);
    threshold_ = dropout_threshold(dropout.probability);
  }

  // Of a tile's columns from tile.from on: a bit each, whole words of 32 for a row. False if
  // nothing is dropped.
  bool keep_bits(const Segment& queries, const Segment& keys, const Tile& tile,
                 uint32_t* bits) const {
    if (!on_) return false;
    const hn::ScalableTag<int32_t> d;  // as signed numbers, with the highest bit turned
    const auto flip = hn::Set(d, std::numeric_limits<int32_t>::min());
    const auto limit = hn::Set(d, static_cast<int32_t>(threshold_ ^ 0x80000000u));
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t i = 0; i < tile.rows(); ++i) {
      const DropoutRow drop = row(queries, keys, tile, i);
      for (int64_t j = tile.from; j < tile.to; j += 32) {
        uint32_t dropped = 0;
        for (int64_t k = 0; k < 32; k += lanes) {
          uint8_t mask[8] = {};
          const auto words = hn::LoadU(d, reinterpret_cast<const int32_t*>(drop.words) + j + k);
          hn::StoreMaskBits(d, hn::Lt(hn::Xor(words, flip), limit), mask);
          uint32_t some;
          std::memcpy(&some, mask, sizeof some);
          dropped |= some << k;
        }
        *bits++ = ~dropped;
      }
    }
    return true;
  }

  DropoutRow row(const Segment& queries, const Segment& keys, const Tile& tile, int64_t row) const {
    if (!on_) return {};
    const uint32_t position = static_cast<uint32_t>(queries.position + tile.queries.begin + row);
    const int64_t channel = keys.position + tile.first_key, start = channel / 64 * 64;
    for (int64_t group = (channel + tile.from) / 64; group * 64 < channel + tile.to; ++group) {
      PhiloxGroup(static_cast<uint32_t>(group), position, queries.sample, key_,
                  words_ + (group * 64 - start));
    }
    return {threshold_, words_ + (channel - start)};
  }

 private:
  bool on_ = false;
  PhiloxKey key_{};
  uint32_t threshold_ = 0;
  uint32_t* words_;
};

// `kept` where the element stays, else zero.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V zero_if_dropped(D d, const DropoutRow& row, int64_t column, V kept) {
  const hn::RebindToSigned<D> di;
  const hn::Rebind<uint32_t, D> words;
  const auto word = hn::LoadU(words, row.words + column);
  if constexpr (sizeof(hn::TFromD<D>) == 4) {  // as signed numbers, with the highest bit turned
    const auto flip = hn::Set(di, std::numeric_limits<int32_t>::min());
    const auto limit = hn::Set(di, static_cast<int32_t>(row.threshold ^ 0x80000000u));
    return hn::IfThenZeroElse(
        hn::RebindMask(d, hn::Lt(hn::Xor(hn::BitCast(di, word), flip), limit)), kept);
  } else {
    const auto wide = hn::BitCast(di, hn::PromoteTo(hn::RebindToUnsigned<D>(), word));
    return hn::IfThenZeroElse(
        hn::RebindMask(d, hn::Lt(wide, hn::Set(di, static_cast<int64_t>(row.threshold)))), kept);
  }
}

}  // namespace rapt::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
