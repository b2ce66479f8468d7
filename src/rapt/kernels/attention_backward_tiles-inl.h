// Attention's backward pass on bf16 tiles (x86/split_tiles.h), per target: one head of one
// sentence, in f32 or from numbers that bf16 can hold. The formulas are those of
// attention_backward-inl.h.
//
// Blocks of a few key tiles outside, whose packed operands stay in the cache; query tiles inside.
// The gradients of keys and values are summed transposed: so weights and their gradients are packed
// as they stand.
#if defined(RAPT_KERNELS_ATTENTION_BACKWARD_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_KERNELS_ATTENTION_BACKWARD_TILES_INL_H_
#undef RAPT_KERNELS_ATTENTION_BACKWARD_TILES_INL_H_
#else
#define RAPT_KERNELS_ATTENTION_BACKWARD_TILES_INL_H_
#endif

#include <cmath>

#include "rapt/kernels/attention_gradient-inl.h"
#include "rapt/kernels/attention_plan.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Packed operands of a key tile: keys and values as columns, and keys with their rows as the inner
// index.
struct PackedKeys {
  std::byte *keys, *values, *keys_inside;
};

struct TileScratch : RowScratch<float> {
  TileScratch(Carver& carver, const AttentionArgs<float>& args, const TileCut& cut)
      : RowScratch<float>(carver, args, cut) {
    if (cut.parts == 0) return;
    const auto packed = [&](int64_t outer, int64_t inner) {
      return carver.take<std::byte>(
          static_cast<int64_t>(x86::packed_bytes(outer, inner, cut.parts)));
    };
    for (PackedKeys& tile : keys) {
      tile = {packed(cut.key_tile, args.Dk), packed(cut.key_tile, args.Dv),
              packed(args.Dk, cut.key_tile)};
    }
    queries = packed(cut.query_tile, args.Dk);
    queries_across = packed(args.Dk, cut.query_tile);
    d_out = packed(cut.query_tile, args.Dv);
    d_out_across = packed(args.Dv, cut.query_tile);
    packed_weights = packed(cut.key_tile, cut.query_tile);
    packed_d_scores = packed(cut.query_tile, cut.key_tile);
    key_width = next_multiple(args.Dk, kLanes<float>);
    value_width = next_multiple(args.Dv, kLanes<float>);
    dq = carver.take<float>(cut.most_queries * key_width);
    dk_across = carver.take<float>(key_width * kBlockStride);
    dv_across = carver.take<float>(value_width * kBlockStride);
    sums = carver.take<float>(cut.key_tile * std::max(key_width, value_width));
  }

  // Of two rows of a block's sums: off the multiples of 4096 bytes.
  static constexpr int64_t kBlockStride = kKeyTilesOfBlock * kMaxKeyTile + 16;

  PackedKeys keys[kKeyTilesOfBlock];
  std::byte* queries = nullptr;         // of a tile: as rows, scaled,
  std::byte* queries_across = nullptr;  // and transposed,
  std::byte* d_out = nullptr;           // and so their outputs' gradients
  std::byte* d_out_across = nullptr;
  std::byte* packed_weights = nullptr;   // of a tile as the right operand, of its d_scores too
  std::byte* packed_d_scores = nullptr;  // and as the left one
  int64_t key_width = 0, value_width = 0;
  float* dq = nullptr;         // (all queries, key_width)
  float* dk_across = nullptr;  // (key_width, keys of a block)
  float* dv_across = nullptr;
  float* sums = nullptr;  // of the keys of a tile
};

class TiledBackwardHead : HeadRows<float> {
 public:
  // Whether a head of sentence b runs on tiles at all.
  static bool takes(const AttentionArgs<float>& args, const AttentionGrads<float>& grads,
                    const TileCut& cut, int64_t b) {
    return cut.parts > 0 && grads.d_weights == nullptr &&
           splits_sentence(args.queries[static_cast<size_t>(b)], args.keys[static_cast<size_t>(b)],
                           cut.parts == 1 ? kSplitFrom : kSplitExactGradientFrom);
  }

  TiledBackwardHead(const AttentionArgs<float>& args, const AttentionGrads<float>& grads,
                    const TileCut& cut, int64_t b, int64_t h, const TileScratch& scratch)
      : HeadRows<float>(args, grads, b, h, scratch),
        cut_(cut),
        scratch_(scratch),
        key_head_(args.key_head(h)) {}

  // False, with nothing written, if a number has no parts or might have none on the way.
  bool run() {
    for (int64_t i = 0; i < queries_.count; ++i) prepare(i);
    if (cut_.parts > 1 && !within_range()) return false;
    std::fill(scratch_.dq, scratch_.dq + queries_.count * scratch_.key_width, 0.0f);
    const int64_t block = kKeyTilesOfBlock * cut_.key_tile;
    for (int64_t first = 0; first < keys_.count; first += block) {
      add_block({first, std::min(first + block, keys_.count)});
    }
    const Gradient<float> dq(grads_.dq, grads_.dq_at, grads_.add_dq, queries_, h_, 0, args_.Dk,
                             scratch_.dq);
    dq.finish(queries_.count);
    return true;
  }

 private:
  // The largest magnitude in a head's rows, infinity for NaN.
  static double largest(const float* rows, int64_t ld, int64_t count, int64_t width) {
    const hn::ScalableTag<uint32_t> d;
    constexpr uint32_t kMagnitude = 0x7FFFFFFF, kInfinity = 0x7F800000;
    const auto magnitude = hn::Set(d, kMagnitude);
    auto most = hn::Zero(d);
    uint32_t tail = 0;
    for (int64_t i = 0; i < count; ++i) {
      const auto* row = reinterpret_cast<const uint32_t*>(rows + i * ld);
      int64_t c = 0;
      for (; c + kLanes<float> <= width; c += kLanes<float>)
        most = hn::Max(most, hn::And(magnitude, hn::LoadU(d, row + c)));
      for (; c < width; ++c) {
        uint32_t bits;
        std::memcpy(&bits, row + c, sizeof bits);
        tail = std::max(tail, bits & kMagnitude);
      }
    }
    const uint32_t bits = std::min(kInfinity, std::max(tail, hn::GetLane(hn::MaxOfLanes(d, most))));
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }

  // Whether no product, weight or gradient on the way leaves the range of f32.
  bool within_range() const {
    constexpr double kMost = 1e36;
    const double q = largest(args_.q + args_.q_at.at(queries_, h_), args_.q_at.row, queries_.count,
                             args_.Dk),
                 k = largest(args_.k + args_.k_at.at(keys_, key_head_), args_.k_at.row, keys_.count,
                             args_.Dk),
                 v = largest(args_.v + args_.v_at.at(keys_, key_head_), args_.v_at.row, keys_.count,
                             args_.Dv),
                 d_out = largest(d_out_, grads_.d_out_at.row, queries_.count, args_.Dv);
    const double scale = std::max(1.0, std::abs(args_.scale) * std::numbers::log2e);
    const double score = scale * q * k * static_cast<double>(args_.Dk),
                 d_weight = scale * v * d_out * static_cast<double>(args_.Dv) /
                            (1 - args_.dropout.probability);
    if (!(score < kMost && d_weight < kMost && q < kMost && k < kMost && v < kMost &&
          d_out < kMost)) {
      return false;
    }
    for (int64_t i = 0; i < queries_.count; ++i) {
      if (!std::isfinite(scratch_.share[i]) || !(std::abs(scratch_.delta[i]) < kMost)) return false;
    }
    return true;
  }

  static void pack(bool left, const float* from, int64_t ld, x86::Stored stored, int64_t outer,
                   int64_t inner, int parts, std::byte* to) {
    const bool whole = left ? x86::pack_left(from, ld, stored, outer, inner, parts, to)
                            : x86::pack_right(from, ld, stored, outer, inner, parts, to);
    RAPT_ASSERT(whole);
  }

  void pack_keys(Range tile, const PackedKeys& to) const {
    const int64_t rows = tile.end - tile.begin;
    const float* k = args_.k + args_.k_at.at(keys_, key_head_, tile.begin);
    const float* v = args_.v + args_.v_at.at(keys_, key_head_, tile.begin);
    using enum x86::Stored;
    pack(false, k, args_.k_at.row, by_outer, rows, args_.Dk, cut_.parts, to.keys);
    pack(false, v, args_.v_at.row, by_outer, rows, args_.Dv, cut_.parts, to.values);
    pack(false, k, args_.k_at.row, by_inner, args_.Dk, rows, cut_.parts, to.keys_inside);
  }

  void pack_rows_of(Range tile) const {
    const int64_t rows = tile.end - tile.begin;
    const float* q = args_.q + args_.q_at.at(queries_, h_, tile.begin);
    const float* d_out = d_out_ + tile.begin * grads_.d_out_at.row;
    using enum x86::Stored;
    pack_queries(args_, queries_, h_, tile, cut_.parts, scratch_.weights, scratch_.queries);
    pack(true, q, args_.q_at.row, by_inner, args_.Dk, rows, cut_.parts, scratch_.queries_across);
    pack(true, d_out, grads_.d_out_at.row, by_outer, rows, args_.Dv, cut_.parts, scratch_.d_out);
    pack(true, d_out, grads_.d_out_at.row, by_inner, args_.Dv, rows, cut_.parts,
         scratch_.d_out_across);
  }

  Range key_tile(Range block, int64_t i) const {
    const int64_t first = block.begin + i * cut_.key_tile;
    return {first, std::min(first + cut_.key_tile, block.end)};
  }

  static void clear(float* across, int64_t rows, int64_t keys) {
    for (int64_t i = 0; i < rows; ++i) {
      float* row = across + i * TileScratch::kBlockStride;
      std::fill(row, row + next_multiple(keys, x86::kPanel), 0.0f);
    }
  }

  void add_block(Range block) {
    clear(scratch_.dk_across, scratch_.key_width, block.end - block.begin);
    clear(scratch_.dv_across, scratch_.value_width, block.end - block.begin);
    const int64_t tiles = pieces(block.end - block.begin, cut_.key_tile);
    bool keys_packed[kKeyTilesOfBlock] = {};
    for (int64_t part = 0; part < cut_.tiles(queries_.count); ++part) {
      const Range rows = cut_.tile(queries_.count, part);
      bool rows_packed = false;
      for (int64_t i = 0; i < tiles; ++i) {
        const Range keys = key_tile(block, i);
        Tile tile = make_tile(args_, b_, h_, rows, keys);
        const Seen seen = seen_of(args_, tile);
        if (seen == Seen::none) continue;
        if (!rows_packed) pack_rows_of(rows);
        if (!keys_packed[i]) pack_keys(keys, scratch_.keys[i]);
        rows_packed = keys_packed[i] = true;
        add_tile(tile, seen, scratch_.keys[i], keys, i * cut_.key_tile);
      }
    }
    for (int64_t i = 0; i < tiles; ++i) {
      const Range keys = key_tile(block, i);
      finish({grads_.dk, grads_.dk_at, grads_.add_dk, keys_, key_head_, keys.begin, args_.Dk,
              scratch_.sums},
             scratch_.dk_across + i * cut_.key_tile, keys.end - keys.begin);
      finish({grads_.dv, grads_.dv_at, grads_.add_dv, keys_, key_head_, keys.begin, args_.Dv,
              scratch_.sums},
             scratch_.dv_across + i * cut_.key_tile, keys.end - keys.begin);
    }
  }

  // `keys` of the block's sums begin at column `at`.
  void add_tile(const Tile& tile, Seen seen, const PackedKeys& packed, Range keys, int64_t at) {
    const int64_t rows = tile.rows(), columns = tile.to - tile.from;
    float *const weights = scratch_.weights + tile.from, *const d_scores =
                                                             scratch_.d_scores + tile.from;
    using enum x86::Stored;
    score_split(args_, tile, seen, scratch_.queries, packed.keys, cut_.parts, scratch_.weights,
                scratch_.bias);
    multiply_keys(scratch_.d_out, packed.values, args_.Dv, tile.from, rows, columns, cut_.parts,
                  d_scores, kScoreStride);
    for (int64_t i = 0; i < rows; ++i) differentiate_row(tile, i, slope_factor());
    take_bias_gradient(tile);
    if (grads_.dv != nullptr) {
      pack(false, weights, kScoreStride, by_inner, columns, rows, cut_.parts,
           scratch_.packed_weights);
      x86::multiply_packed(scratch_.d_out_across, scratch_.packed_weights, args_.Dv, columns, rows,
                           cut_.parts, nullptr, scratch_.dv_across + at + tile.from,
                           TileScratch::kBlockStride, true);
    }
    x86::pack_both(d_scores, kScoreStride, rows, columns, cut_.parts, scratch_.packed_d_scores,
                   scratch_.packed_weights);
    if (grads_.dk != nullptr) {
      x86::multiply_packed(scratch_.queries_across, scratch_.packed_weights, args_.Dk, columns,
                           rows, cut_.parts, nullptr, scratch_.dk_across + at + tile.from,
                           TileScratch::kBlockStride, true);
    }
    if (grads_.dq != nullptr) {
      multiply_inner(scratch_.packed_d_scores, packed.keys_inside, keys.end - keys.begin, tile.from,
                     columns, rows, args_.Dk, cut_.parts,
                     scratch_.dq + tile.queries.begin * scratch_.key_width, scratch_.key_width,
                     true);
    }
  }

  // Brings the sums of a key tile, transposed at `across`, to where they go.
  void finish(const Gradient<float>& gradient, const float* across, int64_t keys) const {
    if (!gradient.wanted) return;
    for (int64_t c = 0; c < gradient.width; c += kLanes<float>) {
      const float* rows[kLanes<float>];
      for (int64_t i = 0; i < kLanes<float>; ++i)
        rows[i] = across + (c + i) * TileScratch::kBlockStride;
      transpose_rows(rows, keys, 1.0f, gradient.sums.data + c, gradient.sums.stride);
    }
    gradient.finish(keys);
  }

  const TileCut& cut_;
  const TileScratch& scratch_;
  const int64_t key_head_;
};

}  // namespace rapt::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
