// Attention's backward pass on bf16 tiles (x86/split_tiles.h), per target: one head of one
// sentence, in f32 or from numbers that bf16 can hold. The formulas are those of
// attention_backward-inl.h.
//
// Blocks of a few key tiles outside, whose packed operands stay in the cache; queries inside. The
// gradients of keys and values are summed transposed: so weights and their gradients are packed as
// they stand. While the tiles multiply for one tile of scores, another's become weights and
// gradients.
#if defined(RAPT_KERNELS_ATTENTION_BACKWARD_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_KERNELS_ATTENTION_BACKWARD_TILES_INL_H_
#undef RAPT_KERNELS_ATTENTION_BACKWARD_TILES_INL_H_
#else
#define RAPT_KERNELS_ATTENTION_BACKWARD_TILES_INL_H_
#endif

#include <cmath>

#include "rapt/kernels/attention_gradient-inl.h"
#include "rapt/kernels/attention_plan.h"
#include "rapt/kernels/x86/attention_tiles.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Packed operands of a key tile: keys and values as columns, and keys with their rows as the inner
// index.
struct PackedKeys {
  std::byte *keys, *values, *keys_inside;
};

// Of a tile of queries: they (scaled) and their outputs' gradients as rows, and both transposed.
struct PackedQueries {
  std::byte *queries, *queries_across, *d_out, *d_out_across;
};

// Of a tile of scores: they and the gradients of the weights, and what comes of them: as right
// operands the weights and the scores' gradients, and these as a left one.
struct SlopeScratch {
  float *scores, *d_weights;
  std::byte *weights, *d_scores_across, *d_scores;
};

struct TileScratch {
  TileScratch(Carver& carver, const AttentionArgs<float>& args, const TileCut& cut) {
    if (cut.parts == 0) return;
    const auto packed = [&](int64_t outer, int64_t inner) {
      return carver.take<std::byte>(
          static_cast<int64_t>(x86::packed_bytes(outer, inner, cut.parts)));
    };
    for (PackedKeys& tile : keys) {
      tile = {packed(kGradientKeys, args.Dk), packed(kGradientKeys, args.Dv),
              packed(args.Dk, kGradientKeys)};
    }
    for (PackedQueries& tile : queries) {
      tile = {packed(kGradientQueries, args.Dk), packed(args.Dk, kGradientQueries),
              packed(kGradientQueries, args.Dv), packed(args.Dv, kGradientQueries)};
    }
    for (SlopeScratch& tile : slopes) {
      tile = {carver.take<float>(kGradientQueries * kScoreStride),
              carver.take<float>(kGradientQueries * kScoreStride),
              packed(kGradientKeys, kGradientQueries), packed(kGradientKeys, kGradientQueries),
              packed(kGradientQueries, kGradientKeys)};
    }
    key_width = next_multiple(args.Dk, kLanes<float>);
    value_width = next_multiple(args.Dv, kLanes<float>);
    dq = carver.take<float>(cut.most_queries * key_width);
    dk_across = carver.take<float>(key_width * kBlockStride);
    dv_across = carver.take<float>(value_width * kBlockStride);
    sums = carver.take<float>(kGradientKeys * std::max(key_width, value_width));
    copy = carver.take<float>(kGradientQueries * args.Dk);
    keep = carver.take<uint32_t>(kGradientQueries * kGradientKeys / 32);
  }

  // Of two rows of a block's sums: off the multiples of 4096 bytes.
  static constexpr int64_t kBlockStride = kKeyTilesOfBlock * kGradientKeys + 16;

  PackedKeys keys[kKeyTilesOfBlock] = {};
  PackedQueries queries[3] = {};  // as many tiles of queries may be under way
  SlopeScratch slopes[2] = {};
  int64_t key_width = 0, value_width = 0;
  float* dq = nullptr;         // (all queries, key_width)
  float* dk_across = nullptr;  // (key_width, keys of a block)
  float* dv_across = nullptr;
  float* sums = nullptr;  // of the keys of a tile
  float* copy = nullptr;
  uint32_t* keep = nullptr;
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
                    const TileCut& cut, int64_t b, int64_t h, const RowScratch<float>& rows,
                    const TileScratch& scratch)
      : HeadRows<float>(args, grads, b, h, rows),
        cut_(cut),
        scratch_(scratch),
        key_head_(args.key_head(h)) {}

  // False, with nothing written, if a number has no parts or might have none on the way.
  bool run() {
    for (int64_t i = 0; i < queries_.count; ++i) prepare(i);
    if (cut_.parts > 1 && !within_range()) return false;
    std::fill(scratch_.dq, scratch_.dq + queries_.count * scratch_.key_width, 0.0f);
    constexpr int64_t block = kKeyTilesOfBlock * kGradientKeys;
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
      if (!std::isfinite(rows_.share[i]) || !(std::abs(rows_.delta[i]) < kMost)) return false;
    }
    return true;
  }

  void pack(bool left, const float* from, int64_t ld, x86::Stored stored, int64_t outer,
            int64_t inner, std::byte* to) const {
    const bool whole = x86::pack({.from = from,
                                  .ld = ld,
                                  .stored = stored,
                                  .left = left,
                                  .outer = outer,
                                  .inner = inner,
                                  .parts = cut_.parts,
                                  .to = to});
    RAPT_ASSERT(whole);
  }

  void pack_keys(Range tile, const PackedKeys& to) const {
    const int64_t rows = tile.end - tile.begin;
    const float* k = args_.k + args_.k_at.at(keys_, key_head_, tile.begin);
    const float* v = args_.v + args_.v_at.at(keys_, key_head_, tile.begin);
    using enum x86::Stored;
    pack(false, k, args_.k_at.row, by_outer, rows, args_.Dk, to.keys);
    pack(false, v, args_.v_at.row, by_outer, rows, args_.Dv, to.values);
    pack(false, k, args_.k_at.row, by_inner, args_.Dk, rows, to.keys_inside);
  }

  void pack_rows(Range tile, const PackedQueries& to) const {
    const int64_t rows = tile.end - tile.begin;
    const float* q = args_.q + args_.q_at.at(queries_, h_, tile.begin);
    const float* d_out = d_out_ + tile.begin * grads_.d_out_at.row;
    using enum x86::Stored;
    pack_queries(args_, queries_, h_, tile, cut_.parts, scratch_.copy, to.queries);
    pack(true, q, args_.q_at.row, by_inner, args_.Dk, rows, to.queries_across);
    pack(true, d_out, grads_.d_out_at.row, by_outer, rows, args_.Dv, to.d_out);
    pack(true, d_out, grads_.d_out_at.row, by_inner, args_.Dv, rows, to.d_out_across);
  }

  static Range key_tile(Range block, int64_t i) {
    const int64_t first = block.begin + i * kGradientKeys;
    return {first, std::min(first + kGradientKeys, block.end)};
  }

  static void clear(float* across, int64_t rows, int64_t keys) {
    for (int64_t i = 0; i < rows; ++i) {
      float* row = across + i * TileScratch::kBlockStride;
      std::fill(row, row + next_multiple(keys, x86::kPanel), 0.0f);
    }
  }

  // What some queries see of a key tile.
  struct Work {
    Tile tile;
    Seen seen;
    Range keys;
    int64_t column;  // of the block's sums, where the tile's keys begin
    const PackedKeys* packed_keys;
    const PackedQueries* packed_queries;
    const SlopeScratch* at;
  };

  // Three tiles are under way: one is scored, the one before it is differentiated, and the one
  // before that is multiplied into the gradients.
  void add_block(Range block) {
    clear(scratch_.dk_across, scratch_.key_width, block.end - block.begin);
    clear(scratch_.dv_across, scratch_.value_width, block.end - block.begin);
    const int64_t tiles = pieces(block.end - block.begin, kGradientKeys);
    bool keys_packed[kKeyTilesOfBlock] = {};
    Work scored{}, done{};
    int64_t count = 0, used = 0;  // of tiles of scores and of queries
    for (int64_t first = 0; first < queries_.count; first += kGradientQueries) {
      const Range rows{first, std::min(first + kGradientQueries, queries_.count)};
      bool rows_packed = false;
      for (int64_t i = 0; i < tiles; ++i) {
        const Range keys = key_tile(block, i);
        Work work{make_tile(args_, b_, h_, rows, keys),
                  Seen::none,
                  keys,
                  i * kGradientKeys,
                  &scratch_.keys[i],
                  &scratch_.queries[used % 3],
                  &scratch_.slopes[count % 2]};
        work.seen = seen_of(args_, work.tile);
        if (work.seen == Seen::none) continue;
        if (!rows_packed) pack_rows(rows, scratch_.queries[used % 3]);
        if (!keys_packed[i]) pack_keys(keys, scratch_.keys[i]);
        rows_packed = keys_packed[i] = true;
        advance(&work, count > 0 ? &scored : nullptr, count > 1 ? &done : nullptr);
        done = scored;
        scored = work;
        ++count;
      }
      used += rows_packed ? 1 : 0;
    }
    if (count > 0) {
      advance(nullptr, &scored, count > 1 ? &done : nullptr);
      advance(nullptr, nullptr, &scored);
    }
    for (int64_t i = 0; i < tiles; ++i) {
      const Range keys = key_tile(block, i);
      finish({grads_.dk, grads_.dk_at, grads_.add_dk, keys_, key_head_, keys.begin, args_.Dk,
              scratch_.sums},
             scratch_.dk_across + i * kGradientKeys, keys.end - keys.begin);
      finish({grads_.dv, grads_.dv_at, grads_.add_dv, keys_, key_head_, keys.begin, args_.Dv,
              scratch_.sums},
             scratch_.dv_across + i * kGradientKeys, keys.end - keys.begin);
    }
  }

  void advance(const Work* next, const Work* scored, const Work* done) {
    x86::PackedProduct products[5];
    size_t count = 0;
    if (done != nullptr) {
      if (grads_.dv != nullptr) {
        products[count++] = sum_over_queries(*done, done->packed_queries->d_out_across,
                                             done->at->weights, args_.Dv, scratch_.dv_across);
      }
      if (grads_.dk != nullptr) {
        products[count++] =
            sum_over_queries(*done, done->packed_queries->queries_across, done->at->d_scores_across,
                             args_.Dk, scratch_.dk_across);
      }
      if (grads_.dq != nullptr) products[count++] = sum_over_keys(*done);
    }
    if (next != nullptr) {
      products[count++] = over_features(*next, next->packed_queries->queries,
                                        next->packed_keys->keys, args_.Dk, next->at->scores);
      products[count++] = over_features(*next, next->packed_queries->d_out,
                                        next->packed_keys->values, args_.Dv, next->at->d_weights);
    }
    const std::span<const x86::PackedProduct> all(products, count);
    if (scored == nullptr) {
      x86::multiply(all, cut_.parts);
    } else {
      differentiate(*scored, all);
    }
  }

  // Scores, and the gradients of the weights.
  x86::PackedProduct over_features(const Work& work, const std::byte* left, const std::byte* right,
                                   int64_t width, float* to) const {
    const Tile& tile = work.tile;
    return {.left = left,
            .right = right + x86::packed_bytes(tile.from, width, cut_.parts),
            .rows = next_multiple(tile.rows(), x86::kPanel),
            .cols = next_multiple(tile.to - tile.from, x86::kPanel),
            .inner = width,
            .right_inner = width,
            .c = to + tile.from,
            .ldc = kScoreStride,
            .accumulate = false};
  }
  x86::PackedProduct sum_over_queries(const Work& work, const std::byte* left,
                                      const std::byte* right, int64_t width, float* across) const {
    const Tile& tile = work.tile;
    return {.left = left,
            .right = right,
            .rows = width,
            .cols = tile.to - tile.from,
            .inner = tile.rows(),
            .right_inner = tile.rows(),
            .c = across + work.column + tile.from,
            .ldc = TileScratch::kBlockStride,
            .accumulate = true};
  }
  x86::PackedProduct sum_over_keys(const Work& work) const {
    const Tile& tile = work.tile;
    return {.left = work.at->d_scores,
            .right = work.packed_keys->keys_inside +
                     x86::packed_bytes(x86::kPanel, tile.from, cut_.parts),
            .rows = tile.rows(),
            .cols = args_.Dk,
            .inner = tile.to - tile.from,
            .right_inner = work.keys.end - work.keys.begin,
            .c = scratch_.dq + tile.queries.begin * scratch_.key_width,
            .ldc = scratch_.key_width,
            .accumulate = true};
  }

  // Scores become weights and their gradients those of the scores, beside the products.
  void differentiate(const Work& work, std::span<const x86::PackedProduct> beside) const {
    const Tile& tile = work.tile;
    const int64_t first = tile.queries.begin;
    finish_split(args_, tile, work.seen, cut_.parts, work.at->scores, rows_.bias);
    const bool drops = dropout_.keep_bits(queries_, keys_, tile, scratch_.keep);
    x86::multiply(beside, cut_.parts,
                  x86::Slopes{.scores = work.at->scores + tile.from,
                              .d_weights = work.at->d_weights + tile.from,
                              .ld = kScoreStride,
                              .rows = tile.rows(),
                              .cols = tile.to - tile.from,
                              .most = rows_.most + first,
                              .share = rows_.share + first,
                              .delta = rows_.delta + first,
                              .keep = drops ? scratch_.keep : nullptr,
                              .kept = static_cast<float>(1 / (1 - args_.dropout.probability)),
                              .scale = static_cast<float>(args_.scale),
                              .store = bias_gradient_,
                              .weights = work.at->weights,
                              .d_scores = work.at->d_scores,
                              .d_scores_across = work.at->d_scores_across});
    if (bias_gradient_) {
      args_.bias->take_gradient(score_tile_of(tile), work.at->d_weights + tile.columns.begin,
                                kScoreStride);
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
