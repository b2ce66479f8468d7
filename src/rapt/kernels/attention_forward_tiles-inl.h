// Attention's forward pass on the tiles of AMX (x86/attention_tiles.h), per target: as
// attention_forward-inl.h, in strips of as many queries as fill a block. While the tiles multiply
// for one strip, another's scores become weights.
#if defined(RAPT_KERNELS_ATTENTION_FORWARD_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_KERNELS_ATTENTION_FORWARD_TILES_INL_H_
#undef RAPT_KERNELS_ATTENTION_FORWARD_TILES_INL_H_
#else
#define RAPT_KERNELS_ATTENTION_FORWARD_TILES_INL_H_
#endif

#include <cmath>

#include "rapt/kernels/attention_plan.h"
#include "rapt/kernels/attention_tile-inl.h"
#include "rapt/kernels/x86/attention_tiles.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Of a strip's tile: its scores, and the weights that come of them.
struct StripScratch {
  float* scores = nullptr;  // (kPanel, kScoreStride)
  std::byte* weights = nullptr;
};

struct ForwardTileScratch {
  ForwardTileScratch(Carver& carver, const AttentionArgs<float>& args, const TileCut& cut) {
    if (cut.parts == 0) return;
    constexpr int64_t kRows = x86::kPanel;
    const auto packed = [&](int64_t outer, int64_t inner) {
      return carver.take<std::byte>(
          static_cast<int64_t>(x86::packed_bytes(outer, inner, cut.parts)));
    };
    for (StripScratch& strip : strips)
      strip = {carver.take<float>(kRows * kScoreStride), packed(kRows, cut.key_tile)};
    queries = packed(kMostStrips * kRows, args.Dk);
    keys = packed(cut.key_tile, args.Dk);
    values = packed(args.Dv, cut.key_tile);
    bias = carver.take<float>(args.bias == nullptr ? 0 : kRows * kScoreStride);
    copy = carver.take<float>(kRows * args.Dk);
    most = carver.take<float>(kMostStrips * kRows);
    total = carver.take<float>(kMostStrips * kRows);
    base = carver.take<float>(kRows);
    before = carver.take<float>(kRows);
    tile_total = carver.take<float>(kRows);
    words = carver.take<uint32_t>(kScoreStride + 128);
    keep = carver.take<uint32_t>(kRows * kMaxKeyTile / 32);
  }

  StripScratch strips[2];
  std::byte* queries = nullptr;  // of all strips of a piece
  std::byte* keys = nullptr;     // of a tile
  std::byte* values = nullptr;
  float* bias = nullptr;
  float* copy = nullptr;
  float* most = nullptr;        // of each query of a piece: its largest score so far, to base 2,
  float* total = nullptr;       // and the sum of its weights relative to that
  float* base = nullptr;        // of each query of a strip: what its scores are measured from,
  float* before = nullptr;      // the factor that brings what was summed before up to date,
  float* tile_total = nullptr;  // and the sum of its weights in a tile
  uint32_t* words = nullptr;
  uint32_t* keep = nullptr;
};

// A piece of the queries of one sentence and head.
class TiledForwardPiece {
 public:
  TiledForwardPiece(const AttentionArgs<float>& args, const TileCut& cut, const ForwardItem& item,
                    const ForwardTileScratch& scratch, float* out, const HeadStrides& out_at,
                    SoftmaxSum<float>* sums)
      : args_(args),
        cut_(cut),
        item_(item),
        scratch_(scratch),
        queries_(args.queries[static_cast<size_t>(item.b)]),
        keys_(args.keys[static_cast<size_t>(item.b)]),
        count_(pieces(item.queries.end - item.queries.begin, x86::kPanel)),
        dropout_(args.dropout, item.h, scratch.words),
        out_(out + out_at.at(queries_, item.h)),
        ldo_(out_at.row),
        sums_(sums == nullptr ? nullptr : sums + queries_.row * args.H + item.h) {}

  // False if a number has no parts: then what was written is of no use.
  bool run() {
    for (int64_t i = 0; i < count_; ++i) {
      started_[i] = false;
      if (!pack_queries(args_, queries_, item_.h, rows_of(i), cut_.parts, scratch_.copy,
                        packed_queries(i))) {
        return false;
      }
    }
    const int64_t rows = count_ * x86::kPanel;
    std::fill(scratch_.most, scratch_.most + rows, -std::numeric_limits<float>::infinity());
    std::fill(scratch_.total, scratch_.total + rows, 0.0f);
    const Range seen = keys_by_position(args_.mask, queries_, keys_, item_.queries);
    for (int64_t first = seen.begin / cut_.key_tile * cut_.key_tile; first < seen.end && whole_;
         first += cut_.key_tile) {
      add_keys({first, std::min(first + cut_.key_tile, seen.end)});
    }
    for (int64_t i = 0; i < count_ && whole_; ++i) finish(i);
    return whole_;
  }

 private:
  // What one strip sees of a key tile.
  struct Work {
    Tile tile;
    Seen seen;
    int64_t strip;
    const StripScratch* at;
  };

  Range rows_of(int64_t strip) const {
    const int64_t first = item_.queries.begin + strip * x86::kPanel;
    return {first, std::min(first + x86::kPanel, item_.queries.end)};
  }
  std::byte* packed_queries(int64_t strip) const {
    return scratch_.queries +
           static_cast<int64_t>(x86::packed_bytes(strip * x86::kPanel, args_.Dk, cut_.parts));
  }

  bool pack_keys(Range keys) const {
    const int64_t rows = keys.end - keys.begin, head = args_.key_head(item_.h);
    const auto pack = [&](const float* from, int64_t ld, x86::Stored stored, int64_t outer,
                          int64_t inner, std::byte* to) {
      return x86::pack({.from = from,
                        .ld = ld,
                        .stored = stored,
                        .left = false,
                        .outer = outer,
                        .inner = inner,
                        .parts = cut_.parts,
                        .to = to});
    };
    const bool all_k = pack(args_.k + args_.k_at.at(keys_, head, keys.begin), args_.k_at.row,
                            x86::Stored::by_outer, rows, args_.Dk, scratch_.keys);
    const bool all_v = pack(args_.v + args_.v_at.at(keys_, head, keys.begin), args_.v_at.row,
                            x86::Stored::by_inner, args_.Dv, rows, scratch_.values);
    return all_k && all_v;
  }

  // Three strips are under way: one is scored, the one before it is weighed, and the weights of the
  // one before that meet their values.
  void add_keys(Range keys) {
    Work scored{}, weighed{};
    bool any_scored = false, any_weighed = false;
    int64_t seen_by = 0;
    for (int64_t i = 0; i < count_ && whole_; ++i) {
      Work work{make_tile(args_, item_.b, item_.h, rows_of(i), keys), Seen::none, i,
                &scratch_.strips[seen_by % 2]};
      work.seen = seen_of(args_, work.tile);
      if (work.seen == Seen::none) continue;
      if (seen_by++ == 0) whole_ = pack_keys(keys);
      advance(&work, any_scored ? &scored : nullptr, any_weighed ? &weighed : nullptr, keys);
      weighed = scored;
      any_weighed = any_scored;
      scored = work;
      any_scored = true;
    }
    if (!any_scored || !whole_) return;
    advance(nullptr, &scored, any_weighed ? &weighed : nullptr, keys);
    advance(nullptr, nullptr, &scored, keys);
  }

  void advance(const Work* next, const Work* scored, const Work* weighed, Range keys) {
    x86::PackedProduct products[2];
    size_t count = 0;
    if (weighed != nullptr) products[count++] = values_product(*weighed, keys);
    if (next != nullptr) products[count++] = scores_product(*next);
    const std::span<const x86::PackedProduct> all(products, count);
    if (scored == nullptr) {
      x86::multiply(all, cut_.parts);
    } else {
      weigh(*scored, all);
    }
    if (weighed != nullptr) started_[weighed->strip] = true;
  }

  x86::PackedProduct scores_product(const Work& work) const {
    const Tile& tile = work.tile;
    return {.left = packed_queries(work.strip),
            .right = scratch_.keys + x86::packed_bytes(tile.from, args_.Dk, cut_.parts),
            .rows = x86::kPanel,
            .cols = next_multiple(tile.to - tile.from, x86::kPanel),
            .inner = args_.Dk,
            .right_inner = args_.Dk,
            .c = work.at->scores + tile.from,
            .ldc = kScoreStride,
            .accumulate = false};
  }
  x86::PackedProduct values_product(const Work& work, Range keys) const {
    const Tile& tile = work.tile;
    return {.left = work.at->weights,
            .right = scratch_.values + x86::packed_bytes(x86::kPanel, tile.from, cut_.parts),
            .rows = tile.rows(),
            .cols = args_.Dv,
            .inner = tile.to - tile.from,
            .right_inner = keys.end - keys.begin,
            .c = out_ + tile.queries.begin * ldo_,
            .ldc = ldo_,
            .accumulate = started_[work.strip]};
  }

  // Scores become weights relative to each query's largest score so far, beside the products.
  void weigh(const Work& work, std::span<const x86::PackedProduct> beside) {
    const Tile& tile = work.tile;
    const int64_t first = work.strip * x86::kPanel;
    finish_split(args_, tile, work.seen, cut_.parts, work.at->scores, scratch_.bias);
    for (int64_t i = 0; i < tile.rows(); ++i)
      scratch_.base[i] = largest_score(tile, work.at->scores + i * kScoreStride);
    std::fill(scratch_.base + tile.rows(), scratch_.base + x86::kPanel, 0.0f);
    rise(x86::kPanel, scratch_.most + first, scratch_.base, scratch_.before);
    const bool drops = dropout_.keep_bits(queries_, keys_, tile, scratch_.keep);
    x86::multiply(beside, cut_.parts,
                  x86::Weighing{.scores = work.at->scores + tile.from,
                                .ld = kScoreStride,
                                .rows = tile.rows(),
                                .cols = tile.to - tile.from,
                                .base = scratch_.base,
                                .keep = drops ? scratch_.keep : nullptr,
                                .sums = scratch_.tile_total,
                                .packed = work.at->weights});
    add_totals(x86::kPanel, scratch_.before, scratch_.tile_total, scratch_.total + first);
    for (int64_t i = 0; i < tile.rows(); ++i)
      whole_ = whole_ && std::isfinite(scratch_.total[first + i]);
    if (started_[work.strip]) scale_rows(tile.queries, scratch_.before);
  }

  // Rows of the output times a factor each.
  void scale_rows(Range rows, const float* factors) const {
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      const float factor = factors[i - rows.begin];
      float* out = out_ + i * ldo_;
      for (int64_t c = 0; factor != 1 && c < args_.Dv; ++c) out[c] *= factor;
    }
  }

  // Sums become outputs, and the backward gets what it needs. A query that has seen nothing gets
  // zeros.
  void finish(int64_t strip) const {
    const Range rows = rows_of(strip);
    const float kept = static_cast<float>(1 / (1 - args_.dropout.probability));
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      const int64_t at = strip * x86::kPanel + i - rows.begin;
      const float total = scratch_.total[at], factor = total == 0 ? 0.0f : kept / total;
      float* out = out_ + i * ldo_;
      for (int64_t c = 0; c < args_.Dv; ++c) out[c] = started_[strip] ? factor * out[c] : 0.0f;
      if (sums_ != nullptr) sums_[i * args_.H] = {scratch_.most[at], total};
    }
  }

  const AttentionArgs<float>& args_;
  const TileCut& cut_;
  const ForwardItem& item_;
  const ForwardTileScratch& scratch_;
  const Segment& queries_;
  const Segment& keys_;
  const int64_t count_;  // of strips
  DropoutOfHead dropout_;
  float* const out_;  // of the sentence's first query
  const int64_t ldo_;
  SoftmaxSum<float>* const sums_;  // of the sentence's first query
  bool started_[kMostStrips];      // whether a strip's output has sums
  bool whole_ = true;              // whether all numbers had parts so far
};

}  // namespace rapt::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
