// Attention's backward pass, per target: one head of one sentence. Weights are computed again from
// the logarithm of each query's sum; key tiles outside, query tiles inside.
//
// With P the weights, M dropout's mask over them (elements 0 or 1 / (1 - p)) and delta_i = out_i .
// d_out_i:
//   dV = (P M)^T dO     dS = P (M (dO V^T) - delta)     dQ = scale dS K     dK = scale dS^T Q dBias
//   = dS
#if defined(RAPT_KERNELS_ATTENTION_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_KERNELS_ATTENTION_BACKWARD_INL_H_
#undef RAPT_KERNELS_ATTENTION_BACKWARD_INL_H_
#else
#define RAPT_KERNELS_ATTENTION_BACKWARD_INL_H_
#endif

#include "rapt/kernels/attention_plan.h"
#include "rapt/kernels/attention_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
struct BackwardScratch {
  BackwardScratch(Carver& carver, const AttentionArgs<T>& args, const TileCut& cut)
      : key_width(next_multiple(args.Dk, kLanes<T>)),
        value_width(next_multiple(args.Dv, kLanes<T>)),
        keys_across(carver.take<T>(next_multiple(cut.key_tile, kPanel<T>) * args.Dk)),
        values_across(carver.take<T>(next_multiple(cut.key_tile, kPanel<T>) * args.Dv)),
        keys(carver.take<T>(cut.key_tile * key_width)),
        queries(carver.take<T>(cut.query_tile * key_width)),
        d_out(carver.take<T>(cut.query_tile * value_width)),
        weights(carver.take<T>(cut.query_tile * kScoreStride)),
        d_scores(carver.take<T>(cut.query_tile * kScoreStride)),
        bias(carver.take<T>(args.bias == nullptr ? 0 : cut.query_tile * kScoreStride)),
        dq(carver.take<T>(cut.most_queries * key_width)),
        dk(carver.take<T>(cut.key_tile * key_width)),
        dv(carver.take<T>(cut.key_tile * value_width)),
        log_sum(carver.take<T>(cut.most_queries)),
        delta(carver.take<T>(cut.most_queries)),
        words(carver.take<uint32_t>(kScoreStride + 128)) {}

  int64_t key_width, value_width;  // Dk and Dv in whole vectors
  T* keys_across;                  // a key tile, transposed
  T* values_across;
  T* keys;  // a key tile and a query tile, rows padded
  T* queries;
  T* d_out;
  T* weights;  // P M / its factor, and dS, of a tile
  T* d_scores;
  T* bias;
  T* dq;  // sums: of all queries, and of one key tile
  T* dk;
  T* dv;
  T* log_sum;  // of each query, to base 2
  T* delta;
  uint32_t* words;
};

template <class T>
class BackwardHead {
 public:
  BackwardHead(const AttentionArgs<T>& args, const AttentionGrads<T>& grads, const TileCut& cut,
               int64_t b, int64_t h, const BackwardScratch<T>& scratch)
      : args_(args),
        grads_(grads),
        cut_(cut),
        b_(b),
        h_(h),
        scratch_(scratch),
        queries_(args.queries[static_cast<size_t>(b)]),
        keys_(args.keys[static_cast<size_t>(b)]),
        bias_gradient_(args.bias != nullptr && args.bias->gradient_group(b, h) >= 0),
        kept_(static_cast<T>(1 / (1 - args.dropout.probability))),
        dropout_(args.dropout, h, scratch.words) {}

  void run() {
    for (int64_t i = 0; i < queries_.count; ++i) prepare(i);
    std::fill(scratch_.dq, scratch_.dq + queries_.count * scratch_.key_width, T(0));
    for (int64_t first = 0; first < keys_.count; first += cut_.key_tile) {
      add_keys({first, std::min(first + cut_.key_tile, keys_.count)});
    }
    if (grads_.dq == nullptr) return;
    for (int64_t i = 0; i < queries_.count; ++i) {
      write_row(scratch_.dq + i * scratch_.key_width, args_.Dk, static_cast<T>(args_.scale),
                grads_.add_dq, grads_.dq + (queries_.row + i) * grads_.lddq + h_ * args_.Dk);
    }
  }

 private:
  const T* d_out(int64_t i) const {
    return grads_.d_out + (queries_.row + i) * grads_.ld_d_out + h_ * args_.Dv;
  }

  void prepare(int64_t i) {
    const hn::ScalableTag<T> d;
    const T* out = grads_.out + (queries_.row + i) * grads_.ldo + h_ * args_.Dv;
    const T* d_o = d_out(i);
    auto sum = hn::Zero(d);
    int64_t c = 0;
    for (; c + kLanes<T> <= args_.Dv; c += kLanes<T>)
      sum = hn::MulAdd(hn::LoadU(d, out + c), hn::LoadU(d, d_o + c), sum);
    T delta = hn::GetLane(hn::SumOfLanes(d, sum));
    for (; c < args_.Dv; ++c) delta += out[c] * d_o[c];
    scratch_.delta[i] = delta;
    // A query that saw nothing: all its weights are 2^(score - infinity) = 0.
    const T log_sum = grads_.log_sum[(queries_.row + i) * args_.H + h_];
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    scratch_.log_sum[i] = log_sum == -kInfinity ? kInfinity : log_sum * std::numbers::log2e_v<T>;
  }

  void add_keys(Range tile) {
    const int64_t rows = tile.end - tile.begin, first = keys_.row + tile.begin;
    const T* k = args_.k + first * args_.ldk + h_ * args_.Dk;
    const T* v = args_.v + first * args_.ldv + h_ * args_.Dv;
    const T scale = static_cast<T>(args_.scale * std::numbers::log2e);
    const bool copy = queries_.count > kCopyFrom;
    const Operands operands{
        pack_transposed(k, args_.ldk, {0, rows}, args_.Dk, scale, scratch_.keys_across),
        pack_transposed(v, args_.ldv, {0, rows}, args_.Dv, T(1), scratch_.values_across),
        pack_rows(k, args_.ldk, rows, args_.Dk, copy, scratch_.keys)};
    std::fill(scratch_.dk, scratch_.dk + rows * scratch_.key_width, T(0));
    std::fill(scratch_.dv, scratch_.dv + rows * scratch_.value_width, T(0));
    const int64_t parts = pieces(queries_.count, cut_.query_tile);
    for (int64_t i = 0; i < parts; ++i) {
      add_tile(make_tile(args_, b_, h_, piece(queries_.count, parts, i), tile), operands);
    }
    for (int64_t i = 0; i < rows; ++i) {
      if (grads_.dk != nullptr) {
        write_row(scratch_.dk + i * scratch_.key_width, args_.Dk, static_cast<T>(args_.scale),
                  grads_.add_dk, grads_.dk + (first + i) * grads_.lddk + h_ * args_.Dk);
      }
      if (grads_.dv != nullptr) {
        write_row(scratch_.dv + i * scratch_.value_width, args_.Dv, kept_, grads_.add_dv,
                  grads_.dv + (first + i) * grads_.lddv + h_ * args_.Dv);
      }
    }
  }

  // A key tile as the right side of products.
  struct Operands {
    Right<T> keys_across, values_across, keys;
  };

  void add_tile(const Tile& tile, const Operands& operands) {
    if (!score_tile(args_, tile, operands.keys_across, scratch_.weights, scratch_.bias)) return;
    const int64_t rows = tile.rows(), columns = tile.columns.end - tile.columns.begin;
    const T* d_o = d_out(tile.queries.begin);
    multiply(StridedLeft<T>{d_o, grads_.ld_d_out}, from_column(operands.values_across, tile.from),
             rows, args_.Dv, (tile.to - tile.from) / kLanes<T>,
             Result<T>{scratch_.d_scores + tile.from, kScoreStride});
    for (int64_t i = 0; i < rows; ++i) differentiate_row(tile, i);
    if (bias_gradient_) {
      args_.bias->take_gradient(score_tile_of(tile), scratch_.d_scores + tile.columns.begin,
                                kScoreStride);
    }
    if (grads_.dv != nullptr) {
      const Right<T> right = pack_rows(d_o, grads_.ld_d_out, rows, args_.Dv, false, scratch_.d_out);
      multiply(TransposedLeft<T, kScoreStride>{scratch_.weights + tile.columns.begin}, right,
               columns, rows, scratch_.value_width / kLanes<T>,
               Result<T>{scratch_.dv + tile.columns.begin * scratch_.value_width,
                         scratch_.value_width, true});
    }
    if (grads_.dk != nullptr) {
      const T* q = args_.q + (queries_.row + tile.queries.begin) * args_.ldq + h_ * args_.Dk;
      const Right<T> right = pack_rows(q, args_.ldq, rows, args_.Dk, false, scratch_.queries);
      multiply(TransposedLeft<T, kScoreStride>{scratch_.d_scores + tile.columns.begin}, right,
               columns, rows, scratch_.key_width / kLanes<T>,
               Result<T>{scratch_.dk + tile.columns.begin * scratch_.key_width, scratch_.key_width,
                         true});
    }
    if (grads_.dq != nullptr) {
      multiply(FixedLeft<T, kScoreStride>{scratch_.d_scores + tile.columns.begin},
               from_row(operands.keys, tile.columns.begin), rows, columns,
               scratch_.key_width / kLanes<T>,
               Result<T>{scratch_.dq + tile.queries.begin * scratch_.key_width, scratch_.key_width,
                         true});
    }
  }

  // Row i: scores become weights, the gradients of the weights those of the scores.
  void differentiate_row(const Tile& tile, int64_t i) {
    const hn::ScalableTag<T> d;
    T* weights = scratch_.weights + i * kScoreStride;
    T* d_scores = scratch_.d_scores + i * kScoreStride;
    const auto log_sum = hn::Set(d, scratch_.log_sum[tile.queries.begin + i]);
    const auto delta = hn::Set(d, scratch_.delta[tile.queries.begin + i]), kept = hn::Set(d, kept_);
    const DropoutRow drop = dropout_.row(queries_, keys_, tile, i);
    for (int64_t j = tile.from; j < tile.to; j += kLanes<T>) {
      const auto weight = exp2(d, hn::Sub(hn::LoadU(d, weights + j), log_sum));
      auto used = weight, d_weight = hn::LoadU(d, d_scores + j);
      if (drop.words != nullptr) {
        used = zero_if_dropped(d, drop, j, weight);
        d_weight = zero_if_dropped(d, drop, j, hn::Mul(kept, d_weight));
      }
      hn::StoreU(used, d, weights + j);
      hn::StoreU(hn::Mul(weight, hn::Sub(d_weight, delta)), d, d_scores + j);
    }
  }

  const AttentionArgs<T>& args_;
  const AttentionGrads<T>& grads_;
  const TileCut& cut_;
  const int64_t b_, h_;
  const BackwardScratch<T>& scratch_;
  const Segment& queries_;
  const Segment& keys_;
  const bool bias_gradient_;
  const T kept_;
  DropoutOfHead dropout_;
};

}  // namespace rapt::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
