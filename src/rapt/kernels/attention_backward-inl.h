// Attention's backward pass, per target: one head of one sentence. Weights are computed again from
// each query's largest score and sum; key tiles outside, query tiles inside.
//
// With P the weights, M dropout's mask over them (elements 0 or 1 / (1 - p)) and delta_i = out_i .
// d_out_i:
//   dV = (P M)^T dO     dS = P (M (dO V^T) - delta)
//   dQ = scale dS K     dK = scale dS^T Q     dBias = dS
// From a gradient dP of the weights themselves: dS = P (dP - delta) with delta_i = P_i . dP_i.
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
        most(carver.take<T>(cut.most_queries)),
        share(carver.take<T>(cut.most_queries)),
        delta(carver.take<T>(cut.most_queries)),
        started(carver.take<bool>(pieces(cut.most_queries, cut.query_tile))),
        words(carver.take<uint32_t>(kScoreStride + 128)) {}

  int64_t key_width, value_width;  // Dk and Dv in whole vectors
  T* keys_across;                  // a key tile, transposed
  T* values_across;
  T* keys;  // a key tile and a query tile, rows padded
  T* queries;
  T* d_out;
  T* weights;  // P M of a tile, and scale dS
  T* d_scores;
  T* bias;
  T* dq;  // sums over many tiles: of all queries, and of one key tile
  T* dk;
  T* dv;
  T* most;   // of each query: its largest score to base 2, infinity where it saw nothing,
  T* share;  // 1 / the sum of its weights relative to that,
  T* delta;
  bool* started;  // of each tile of queries: whether its dq has been written
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
        parts_(pieces(queries_.count, cut.query_tile)),
        dropout_(args.dropout, h, scratch.words),
        d_out_(grads.d_out == nullptr ? nullptr : grads.d_out + grads.d_out_at.at(queries_, h)),
        dq_(grads.dq, grads.dq_at, grads.add_dq, queries_, h, 0, args.Dk,
            parts_ > 1 ? scratch.dq : nullptr) {}

  void run() {
    for (int64_t i = 0; i < queries_.count; ++i) prepare(i);
    std::fill(scratch_.started, scratch_.started + parts_, false);
    for (int64_t first = 0; first < keys_.count; first += cut_.key_tile) {
      add_keys({first, std::min(first + cut_.key_tile, keys_.count)});
    }
    for (int64_t part = 0; part < parts_; ++part) {
      if (!scratch_.started[part]) dq_.clear(piece(queries_.count, parts_, part));
    }
    dq_.finish(queries_.count);
  }

 private:
  // A gradient as the caller gives it, and the part of it that belongs to some rows and this head.
  // Sums over many tiles are kept in `scratch`; without it they stand where the gradient goes.
  struct Target {
    T* data;
    int64_t stride;
    bool add;
  };
  struct Gradient {
    Gradient(T* whole, const HeadStrides& strides, bool add, const Segment& sentence, int64_t head,
             int64_t row, int64_t columns, T* scratch)
        : wanted(whole != nullptr),
          target{wanted ? whole + strides.at(sentence, head, row) : nullptr, strides.row, add},
          width(columns),
          sums(target) {
      if (scratch != nullptr) sums = {scratch, next_multiple(columns, kLanes<T>), false};
    }

    Result<T> rows_from(int64_t row, bool started) const {
      return {sums.data + row * sums.stride, sums.stride, sums.add || started};
    }
    // Zeros, where there is nothing to add to.
    void clear(Range rows) const {
      if (!wanted || sums.add) return;
      for (int64_t i = rows.begin; i < rows.end; ++i) {
        std::fill(sums.data + i * sums.stride, sums.data + i * sums.stride + width, T(0));
      }
    }
    // Brings the sums of the first `rows` rows to where they go.
    void finish(int64_t rows) const {
      if (!wanted || sums.data == target.data) return;
      for (int64_t i = 0; i < rows; ++i) {
        const T* HWY_RESTRICT from = sums.data + i * sums.stride;
        T* HWY_RESTRICT to = target.data + i * target.stride;
        if (target.add) {
          for (int64_t c = 0; c < width; ++c) to[c] += from[c];
        } else {
          std::copy(from, from + width, to);
        }
      }
    }

    bool wanted;
    Target target;
    int64_t width;
    Target sums;
  };

  // A key tile as the right side of products.
  struct Operands {
    Right<T> keys_across{}, values_across{}, keys{};
  };

  static T dot(const T* a, const T* b, int64_t count) {
    const hn::ScalableTag<T> d;
    auto sum = hn::Zero(d);
    int64_t c = 0;
    for (; c + kLanes<T> <= count; c += kLanes<T>)
      sum = hn::MulAdd(hn::LoadU(d, a + c), hn::LoadU(d, b + c), sum);
    T total = hn::GetLane(hn::SumOfLanes(d, sum));
    for (; c < count; ++c) total += a[c] * b[c];
    return total;
  }

  // Where a row of the weights, or of their gradient, begins.
  const T* weights_row(const T* weights, int64_t i) const {
    return weights + (b_ * args_.H + h_) * grads_.weights_of_head + i * grads_.ldw;
  }

  void prepare(int64_t i) {
    if (grads_.d_weights != nullptr) {
      scratch_.delta[i] =
          dot(weights_row(grads_.weights, i), weights_row(grads_.d_weights, i), keys_.count);
      return;
    }
    scratch_.delta[i] = dot(grads_.out + grads_.out_at.at(queries_, h_, i),
                            d_out_ + i * grads_.d_out_at.row, args_.Dv);
    // A query that saw nothing: all its weights are 2^(score - infinity) = 0.
    const SoftmaxSum<T> sum = grads_.sums[(queries_.row + i) * args_.H + h_];
    scratch_.most[i] = sum.total == 0 ? std::numeric_limits<T>::infinity() : sum.most;
    scratch_.share[i] = sum.total == 0 ? T(0) : 1 / sum.total;
  }

  Operands pack(Range tile) const {
    const int64_t rows = tile.end - tile.begin, head = args_.key_head(h_);
    const T* k = args_.k + args_.k_at.at(keys_, head, tile.begin);
    const T* v = args_.v + args_.v_at.at(keys_, head, tile.begin);
    const T scale = static_cast<T>(args_.scale * std::numbers::log2e);
    return {
        pack_transposed(k, args_.k_at.row, rows, args_.Dk, scale, scratch_.keys_across),
        pack_transposed(v, args_.v_at.row, rows, args_.Dv, T(1), scratch_.values_across),
        pack_rows(k, args_.k_at.row, rows, args_.Dk, queries_.count > kCopyFrom, scratch_.keys)};
  }

  void add_keys(Range tile) {
    const int64_t rows = tile.end - tile.begin, head = args_.key_head(h_);
    const bool many = parts_ > 1;
    const Gradient dk(grads_.dk, grads_.dk_at, grads_.add_dk, keys_, head, tile.begin, args_.Dk,
                      many ? scratch_.dk : nullptr);
    const Gradient dv(grads_.dv, grads_.dv_at, grads_.add_dv, keys_, head, tile.begin, args_.Dv,
                      many ? scratch_.dv : nullptr);
    Operands operands;
    bool packed = false, started = false;  // packed as soon as anybody sees them
    for (int64_t part = 0; part < parts_; ++part) {
      Tile scores = make_tile(args_, b_, h_, piece(queries_.count, parts_, part), tile);
      const Seen seen = seen_of(args_, scores);
      if (seen == Seen::none) continue;
      if (!packed) operands = pack(tile);
      packed = true;
      if (grads_.d_weights == nullptr) {
        score_tile(args_, scores, seen, operands.keys_across, scratch_.weights, scratch_.bias);
      }
      if (!started && scores.columns.end - scores.columns.begin < rows) {
        dk.clear({0, rows});  // the first queries do not see all of these keys
        dv.clear({0, rows});
        started = true;
      }
      differentiate(scores, operands);
      add_products(scores, operands, dk, dv, started, scratch_.started[part]);
      started = scratch_.started[part] = true;
    }
    if (!started) {
      dk.clear({0, rows});
      dv.clear({0, rows});
    }
    dk.finish(rows);
    dv.finish(rows);
  }

  // Scores become weights, and scale * dS stands beside them.
  void differentiate(const Tile& tile, const Operands& operands) {
    const T scale = static_cast<T>(args_.scale), factor = bias_gradient_ ? T(1) : scale;
    if (grads_.d_weights != nullptr) {
      for (int64_t i = 0; i < tile.rows(); ++i) differentiate_weights_row(tile, i, factor);
    } else {
      multiply(
          StridedLeft<T>{d_out_ + tile.queries.begin * grads_.d_out_at.row, grads_.d_out_at.row},
          from_column(operands.values_across, tile.from), tile.rows(), args_.Dv,
          tile.to - tile.from, Result<T>{scratch_.d_scores + tile.from, kScoreStride});
      for (int64_t i = 0; i < tile.rows(); ++i) differentiate_row(tile, i, factor);
    }
    if (!bias_gradient_) return;
    args_.bias->take_gradient(score_tile_of(tile), scratch_.d_scores + tile.columns.begin,
                              kScoreStride);
    for (int64_t i = 0; i < tile.rows(); ++i) {
      T* row = scratch_.d_scores + i * kScoreStride;
      for (int64_t j = tile.columns.begin; j < tile.columns.end; ++j) row[j] *= scale;
    }
  }

  // `started` and `dq_started` tell whether the gradients of these keys, of these queries, exist.
  void add_products(const Tile& tile, const Operands& operands, const Gradient& dk,
                    const Gradient& dv, bool started, bool dq_started) {
    const int64_t rows = tile.rows(), columns = tile.columns.end - tile.columns.begin;
    const T* d_scores = scratch_.d_scores + tile.columns.begin;
    if (dv.wanted) {
      const T* d_out = d_out_ + tile.queries.begin * grads_.d_out_at.row;
      const auto right =
          pack_rows(d_out, grads_.d_out_at.row, rows, args_.Dv, false, scratch_.d_out);
      multiply(TransposedLeft<T, kScoreStride>{scratch_.weights + tile.columns.begin}, right,
               columns, rows, args_.Dv, dv.rows_from(tile.columns.begin, started));
    }
    if (dk.wanted) {
      const T* q = args_.q + args_.q_at.at(queries_, h_, tile.queries.begin);
      const auto right = pack_rows(q, args_.q_at.row, rows, args_.Dk, false, scratch_.queries);
      multiply(TransposedLeft<T, kScoreStride>{d_scores}, right, columns, rows, args_.Dk,
               dk.rows_from(tile.columns.begin, started));
    }
    if (dq_.wanted) {
      multiply(FixedLeft<T, kScoreStride>{d_scores}, from_row(operands.keys, tile.columns.begin),
               rows, columns, args_.Dk, dq_.rows_from(tile.queries.begin, dq_started));
    }
  }

  // Row i: scores become weights, the gradients of the weights those of the scores, times `factor`.
  void differentiate_row(const Tile& tile, int64_t i, T factor) {
    const hn::ScalableTag<T> d;
    T* weights = scratch_.weights + i * kScoreStride;
    T* d_scores = scratch_.d_scores + i * kScoreStride;
    const auto most = hn::Set(d, scratch_.most[tile.queries.begin + i]);
    const auto share = hn::Set(d, scratch_.share[tile.queries.begin + i]);
    const auto delta = hn::Set(d, scratch_.delta[tile.queries.begin + i]);
    const auto kept = hn::Set(d, static_cast<T>(1 / (1 - args_.dropout.probability)));
    const auto times = hn::Set(d, factor);
    const DropoutRow drop = dropout_.row(queries_, keys_, tile, i);
    for (int64_t j = tile.from; j < tile.to; j += kLanes<T>) {
      const auto weight = hn::Mul(share, exp2(d, hn::Sub(hn::LoadU(d, weights + j), most)));
      auto used = weight, d_weight = hn::LoadU(d, d_scores + j);
      if (drop.words != nullptr) {
        used = zero_if_dropped(d, drop, j, hn::Mul(kept, weight));
        d_weight = zero_if_dropped(d, drop, j, hn::Mul(kept, d_weight));
      }
      hn::StoreU(used, d, weights + j);
      const auto slope = hn::Mul(times, weight);
      hn::StoreU(hn::Mul(slope, hn::Sub(d_weight, delta)), d, d_scores + j);
    }
  }

  // The same from the gradients of the weights that were handed out.
  void differentiate_weights_row(const Tile& tile, int64_t i, T factor) {
    const int64_t query = tile.queries.begin + i;
    const T* weights = weights_row(grads_.weights, query) + tile.first_key;
    const T* d_weights = weights_row(grads_.d_weights, query) + tile.first_key;
    T* d_scores = scratch_.d_scores + i * kScoreStride;
    const T delta = scratch_.delta[query];
    for (int64_t j = tile.columns.begin; j < tile.columns.end; ++j)
      d_scores[j] = factor * weights[j] * (d_weights[j] - delta);
  }

  const AttentionArgs<T>& args_;
  const AttentionGrads<T>& grads_;
  const TileCut& cut_;
  const int64_t b_, h_;
  const BackwardScratch<T>& scratch_;
  const Segment& queries_;
  const Segment& keys_;
  const bool bias_gradient_;
  const int64_t parts_;
  DropoutOfHead dropout_;
  const T* const d_out_;  // of the sentence's first query
  const Gradient dq_;
};

}  // namespace rapt::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
