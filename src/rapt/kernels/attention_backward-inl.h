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

#include "rapt/kernels/attention_gradient-inl.h"
#include "rapt/kernels/attention_plan.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
struct BackwardScratch : RowScratch<T> {
  BackwardScratch(Carver& carver, const AttentionArgs<T>& args, const TileCut& cut)
      : RowScratch<T>(carver, args, cut),
        key_width(next_multiple(args.Dk, kLanes<T>)),
        value_width(next_multiple(args.Dv, kLanes<T>)),
        keys_across(carver.take<T>(next_multiple(cut.key_tile, kPanel<T>) * args.Dk)),
        values_across(carver.take<T>(next_multiple(cut.key_tile, kPanel<T>) * args.Dv)),
        keys(carver.take<T>(cut.key_tile * key_width)),
        queries(carver.take<T>(cut.query_tile * key_width)),
        d_out(carver.take<T>(cut.query_tile * value_width)),
        dq(carver.take<T>(cut.most_queries * key_width)),
        dk(carver.take<T>(cut.key_tile * key_width)),
        dv(carver.take<T>(cut.key_tile * value_width)),
        started(carver.take<bool>(pieces(cut.most_queries, cut.query_tile))) {}

  int64_t key_width, value_width;  // Dk and Dv in whole vectors
  T* keys_across;                  // a key tile, transposed
  T* values_across;
  T* keys;  // a key tile and a query tile, rows padded
  T* queries;
  T* d_out;
  T* dq;  // sums over many tiles: of all queries, and of one key tile
  T* dk;
  T* dv;
  bool* started;  // of each tile of queries: whether its dq has been written
};

template <class T>
class BackwardHead : HeadRows<T> {
 public:
  BackwardHead(const AttentionArgs<T>& args, const AttentionGrads<T>& grads, const TileCut& cut,
               int64_t b, int64_t h, const BackwardScratch<T>& scratch)
      : HeadRows<T>(args, grads, b, h, scratch),
        cut_(cut),
        scratch_(scratch),
        parts_(pieces(queries_.count, cut.query_tile)),
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
  using HeadRows<T>::args_, HeadRows<T>::grads_, HeadRows<T>::b_, HeadRows<T>::h_;
  using HeadRows<T>::queries_, HeadRows<T>::keys_, HeadRows<T>::d_out_;
  using HeadRows<T>::prepare, HeadRows<T>::slope_factor, HeadRows<T>::take_bias_gradient;
  using HeadRows<T>::differentiate_row, HeadRows<T>::differentiate_weights_row;

  // A key tile as the right side of products.
  struct Operands {
    Right<T> keys_across{}, values_across{}, keys{};
  };

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
    const Gradient<T> dk(grads_.dk, grads_.dk_at, grads_.add_dk, keys_, head, tile.begin, args_.Dk,
                         many ? scratch_.dk : nullptr);
    const Gradient<T> dv(grads_.dv, grads_.dv_at, grads_.add_dv, keys_, head, tile.begin, args_.Dv,
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
    const T factor = slope_factor();
    if (grads_.d_weights != nullptr) {
      for (int64_t i = 0; i < tile.rows(); ++i) differentiate_weights_row(tile, i, factor);
    } else {
      multiply(
          StridedLeft<T>{d_out_ + tile.queries.begin * grads_.d_out_at.row, grads_.d_out_at.row},
          from_column(operands.values_across, tile.from), tile.rows(), args_.Dv,
          tile.to - tile.from, Result<T>{scratch_.d_scores + tile.from, kScoreStride});
      for (int64_t i = 0; i < tile.rows(); ++i) differentiate_row(tile, i, factor);
    }
    take_bias_gradient(tile);
  }

  // `started` and `dq_started` tell whether the gradients of these keys, of these queries, exist.
  void add_products(const Tile& tile, const Operands& operands, const Gradient<T>& dk,
                    const Gradient<T>& dv, bool started, bool dq_started) {
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

  const TileCut& cut_;
  const BackwardScratch<T>& scratch_;
  const int64_t parts_;
  const Gradient<T> dq_;
};

}  // namespace rapt::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
