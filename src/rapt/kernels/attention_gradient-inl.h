// What the ways to compute attention's backward pass share, per target: one head of one sentence,
// its rows of weights and their gradients, and where its gradients go. The formulas are those of
// attention_backward-inl.h.
#if defined(RAPT_KERNELS_ATTENTION_GRADIENT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_KERNELS_ATTENTION_GRADIENT_INL_H_
#undef RAPT_KERNELS_ATTENTION_GRADIENT_INL_H_
#else
#define RAPT_KERNELS_ATTENTION_GRADIENT_INL_H_
#endif

#include "rapt/kernels/attention_plan.h"
#include "rapt/kernels/attention_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
struct RowScratch {
  RowScratch(Carver& carver, const AttentionArgs<T>& args, const TileCut& cut)
      : weights(carver.take<T>(cut.query_tile * kScoreStride)),
        d_scores(carver.take<T>(cut.query_tile * kScoreStride)),
        bias(carver.take<T>(args.bias == nullptr ? 0 : most_rows(cut) * kScoreStride)),
        most(carver.take<T>(next_multiple(cut.most_queries, x86::kPanel))),
        share(carver.take<T>(next_multiple(cut.most_queries, x86::kPanel))),
        delta(carver.take<T>(next_multiple(cut.most_queries, x86::kPanel))),
        words(carver.take<uint32_t>(kScoreStride + 128)) {}

  static int64_t most_rows(const TileCut& cut) {
    return cut.parts > 0 ? std::max(cut.query_tile, kGradientQueries) : cut.query_tile;
  }

  T* weights;  // P M of a tile, and scale dS
  T* d_scores;
  T* bias;
  T* most;   // of each query: its largest score to base 2, infinity where it saw nothing,
  T* share;  // 1 / the sum of its weights relative to that,
  T* delta;
  uint32_t* words;
};

// A gradient as the caller gives it, and the part of it that belongs to some rows and this head.
// Sums over many tiles are kept in `scratch`; without it they stand where the gradient goes.
template <class T>
struct Gradient {
  struct Target {
    T* data;
    int64_t stride;
    bool add;
  };
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

template <class T>
class HeadRows {
 public:
  HeadRows(const AttentionArgs<T>& args, const AttentionGrads<T>& grads, int64_t b, int64_t h,
           const RowScratch<T>& rows)
      : args_(args),
        grads_(grads),
        b_(b),
        h_(h),
        queries_(args.queries[static_cast<size_t>(b)]),
        keys_(args.keys[static_cast<size_t>(b)]),
        rows_(rows),
        d_out_(grads.d_out == nullptr ? nullptr : grads.d_out + grads.d_out_at.at(queries_, h)),
        bias_gradient_(args.bias != nullptr && args.bias->gradient_group(b, h) >= 0),
        dropout_(args.dropout, h, rows.words) {}

 protected:
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
      rows_.delta[i] =
          dot(weights_row(grads_.weights, i), weights_row(grads_.d_weights, i), keys_.count);
      return;
    }
    // Values without width have no memory.
    rows_.delta[i] = d_out_ == nullptr ? T(0)
                                       : dot(grads_.out + grads_.out_at.at(queries_, h_, i),
                                             d_out_ + i * grads_.d_out_at.row, args_.Dv);
    // A query that saw nothing: all its weights are 2^(score - infinity) = 0.
    const SoftmaxSum<T> sum = grads_.sums[(queries_.row + i) * args_.H + h_];
    rows_.most[i] = sum.total == 0 ? std::numeric_limits<T>::infinity() : sum.most;
    rows_.share[i] = sum.total == 0 ? T(0) : 1 / sum.total;
  }

  // What the gradients of the scores are multiplied by on the way: their bias's gradient comes
  // before the scale.
  T slope_factor() const { return bias_gradient_ ? T(1) : static_cast<T>(args_.scale); }
  // Gives the bias its gradient, if it wants one, and brings the scale up to date.
  void take_bias_gradient(const Tile& tile) const {
    if (!bias_gradient_) return;
    args_.bias->take_gradient(score_tile_of(tile), rows_.d_scores + tile.columns.begin,
                              kScoreStride);
    const T scale = static_cast<T>(args_.scale);
    for (int64_t i = 0; i < tile.rows(); ++i) {
      T* row = rows_.d_scores + i * kScoreStride;
      for (int64_t j = tile.columns.begin; j < tile.columns.end; ++j) row[j] *= scale;
    }
  }

  // Row i: scores become weights, the gradients of the weights those of the scores, times `factor`.
  void differentiate_row(const Tile& tile, int64_t i, T factor) {
    const hn::ScalableTag<T> d;
    T* weights = rows_.weights + i * kScoreStride;
    T* d_scores = rows_.d_scores + i * kScoreStride;
    const auto most = hn::Set(d, rows_.most[tile.queries.begin + i]);
    const auto share = hn::Set(d, rows_.share[tile.queries.begin + i]);
    const auto delta = hn::Set(d, rows_.delta[tile.queries.begin + i]);
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
    T* d_scores = rows_.d_scores + i * kScoreStride;
    const T delta = rows_.delta[query];
    for (int64_t j = tile.columns.begin; j < tile.columns.end; ++j)
      d_scores[j] = factor * weights[j] * (d_weights[j] - delta);
  }

  const AttentionArgs<T>& args_;
  const AttentionGrads<T>& grads_;
  const int64_t b_, h_;
  const Segment& queries_;
  const Segment& keys_;
  const RowScratch<T>& rows_;
  const T* const d_out_;  // of the sentence's first query
  const bool bias_gradient_;
  const DropoutOfHead dropout_;
};

}  // namespace rapt::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
