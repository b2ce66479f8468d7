// The entry points of attention's backward pass: plan, dispatch, threads.
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "rapt/base/check.h"
#include "rapt/base/memory.h"
#include "rapt/base/random.h"
#include "rapt/base/thread_pool.h"
#include "rapt/kernels/attention.h"
#include "rapt/kernels/attention_plan.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rapt/kernels/attention_grad.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.
#include "rapt/kernels/attention_backward-inl.h"
#include "rapt/kernels/attention_backward_tiles-inl.h"
#include "rapt/kernels/attention_bf16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels::HWY_NAMESPACE {

template <class T>
using HeadScratch =
    ScratchOfBoth<BackwardScratch<T>,
                  std::conditional_t<std::is_same_v<T, float>, TileScratch, NoScratch>>;

// One head of one sentence.
template <class T>
void differentiate_head(const AttentionArgs<T>& args, const AttentionGrads<T>& grads,
                        const TileCut& cut, int64_t b, int64_t h, const HeadScratch<T>& scratch) {
  if constexpr (std::is_same_v<T, float>) {
    if (TiledBackwardHead::takes(args, grads, cut, b) &&
        TiledBackwardHead(args, grads, cut, b, h, scratch.plain, scratch.tiles).run()) {
      return;
    }
  }
  BackwardHead<T>(args, grads, cut, b, h, scratch.plain).run();
}

template <class T>
void run_tasks(const AttentionArgs<T>& args, const AttentionGrads<T>& grads, const TileCut& cut,
               const BackwardPlan& plan, Range tasks) {
  const auto scratch = scratch_of_thread<HeadScratch<T>>(kWorkSlot, args, cut);
  const int64_t key_heads = args.key_heads(),
                query_heads = args.H / std::max<int64_t>(key_heads, 1);
  for (int64_t task = tasks.begin; task < tasks.end; ++task) {
    const Range items = plan.items_of(task);
    for (int64_t i = items.begin; i < items.end; ++i) {
      const int64_t b = plan.item(i) / key_heads, first = plan.item(i) % key_heads * query_heads;
      for (int64_t h = first; h < first + query_heads; ++h) {
        AttentionGrads<T> of_head = grads;  // each adds to what the heads before it made of a key
        of_head.add_dk = grads.add_dk || h > first;
        of_head.add_dv = grads.add_dv || h > first;
        differentiate_head(args, of_head, cut, b, h, scratch);
      }
    }
  }
}

void backward_f32(const AttentionArgs<float>& args, const AttentionGrads<float>& grads,
                  const TileCut& cut, const BackwardPlan& plan, Range tasks) {
  run_tasks(args, grads, cut, plan, tasks);
}
void backward_f64(const AttentionArgs<double>& args, const AttentionGrads<double>& grads,
                  const TileCut& cut, const BackwardPlan& plan, Range tasks) {
  run_tasks(args, grads, cut, plan, tasks);
}

// One key head of one sentence with its query heads.
void differentiate_item(const AttentionArgs<bf16>& args, const AttentionGrads<bf16>& grads,
                        const TileCut& cut, int64_t b, int64_t key_head, const WideHeads& heads,
                        const AttentionArgs<float>& wide, AttentionGrads<float> g,
                        const HeadScratch<float>& scratch) {
  const Segment &queries = args.queries[static_cast<size_t>(b)],
                &keys = args.keys[static_cast<size_t>(b)];
  const int64_t query_heads = args.H / args.key_heads(), first = key_head * query_heads;
  const Range rows{0, queries.count};
  heads.read_keys(args, b, key_head);
  for (int64_t h = first; h < first + query_heads; ++h) {
    heads.q.read(args.q, args.q_at, queries, h, rows);
    if (grads.d_out != nullptr) {
      heads.out.read(grads.out, grads.out_at, queries, h, rows);
      heads.d_out.read(grads.d_out, grads.d_out_at, queries, h, rows);
    }
    g.add_dk = g.add_dv = h > first;
    differentiate_head(wide, g, cut, b, h, scratch);
    if (grads.dq != nullptr) heads.dq.write(grads.dq, grads.dq_at, queries, h, rows, grads.add_dq);
  }
  const Range all{0, keys.count};
  if (grads.dk != nullptr) heads.dk.write(grads.dk, grads.dk_at, keys, key_head, all, grads.add_dk);
  if (grads.dv != nullptr) heads.dv.write(grads.dv, grads.dv_at, keys, key_head, all, grads.add_dv);
}

void backward_bf16(const AttentionArgs<bf16>& args, const AttentionGrads<bf16>& grads,
                   const TileCut& cut, const BackwardPlan& plan, Range tasks) {
  const auto heads = scratch_of_thread<WideHeads>(kWideSlot, args, true);
  const AttentionArgs<float> wide = heads.args(args);
  const auto scratch = scratch_of_thread<HeadScratch<float>>(kWorkSlot, wide, cut);
  AttentionGrads<float> g;
  if (grads.d_out != nullptr) {
    g.out = heads.out.data, g.out_at = heads.out.at();
    g.d_out = heads.d_out.data, g.d_out_at = heads.d_out.at();
  }
  g.sums = grads.sums;
  if (grads.dq != nullptr) g.dq = heads.dq.data, g.dq_at = heads.dq.at();
  if (grads.dk != nullptr) g.dk = heads.dk.data, g.dk_at = heads.dk.at();
  if (grads.dv != nullptr) g.dv = heads.dv.data, g.dv_at = heads.dv.at();
  g.weights = grads.weights, g.d_weights = grads.d_weights;
  g.ldw = grads.ldw, g.weights_of_head = grads.weights_of_head;
  for (int64_t task = tasks.begin; task < tasks.end; ++task) {
    const Range items = plan.items_of(task);
    for (int64_t i = items.begin; i < items.end; ++i) {
      const int64_t item = plan.item(i), key_heads = args.key_heads();
      differentiate_item(args, grads, cut, item / key_heads, item % key_heads, heads, wide, g,
                         scratch);
    }
  }
}

// Weights of some queries of one sentence and head, each row zero where nothing is seen.
template <class T>
void weigh_queries(const AttentionArgs<T>& args, const TileCut& cut, const SoftmaxSum<T>* sums,
                   int64_t b, int64_t h, Range queries, T* weights, int64_t ldw) {
  const auto scratch = scratch_of_thread<BackwardScratch<T>>(kWorkSlot, args, cut);
  const Segment& keys = args.keys[static_cast<size_t>(b)];
  const hn::ScalableTag<T> d;
  for (int64_t i = queries.begin; i < queries.end; ++i)
    std::fill(weights + i * ldw, weights + i * ldw + keys.count, T(0));
  for (int64_t first = 0; first < keys.count; first += cut.key_tile) {
    const Range tile{first, std::min(first + cut.key_tile, keys.count)};
    Tile scores = make_tile(args, b, h, queries, tile);
    const Seen seen = seen_of(args, scores);
    if (seen == Seen::none) continue;
    const auto packed = pack_transposed(
        args.k + args.k_at.at(keys, args.key_head(h), first), args.k_at.row, tile.end - first,
        args.Dk, static_cast<T>(args.scale * std::numbers::log2e), scratch.keys_across);
    score_tile(args, scores, seen, packed, scratch.weights, scratch.bias);
    for (int64_t i = 0; i < scores.rows(); ++i) {
      const int64_t query = args.queries[static_cast<size_t>(b)].row + queries.begin + i;
      const SoftmaxSum<T> sum = sums[query * args.H + h];
      if (sum.total == 0) continue;
      const auto base = hn::Set(d, sum.most), share = hn::Set(d, 1 / sum.total);
      T* row = scratch.weights + i * kScoreStride;
      for (int64_t j = scores.from; j < scores.to; j += kLanes<T>)
        hn::StoreU(hn::Mul(share, exp2(d, hn::Sub(hn::LoadU(d, row + j), base))), d, row + j);
      std::copy(row + scores.columns.begin, row + scores.columns.end,
                weights + (queries.begin + i) * ldw + first + scores.columns.begin);
    }
  }
}

void weights_f32(const AttentionArgs<float>& args, const TileCut& cut,
                 const SoftmaxSum<float>* sums, int64_t b, int64_t h, Range queries, float* weights,
                 int64_t ldw) {
  weigh_queries(args, cut, sums, b, h, queries, weights, ldw);
}
void weights_f64(const AttentionArgs<double>& args, const TileCut& cut,
                 const SoftmaxSum<double>* sums, int64_t b, int64_t h, Range queries,
                 double* weights, int64_t ldw) {
  weigh_queries(args, cut, sums, b, h, queries, weights, ldw);
}
void weights_bf16(const AttentionArgs<bf16>& args, const TileCut& cut,
                  const SoftmaxSum<float>* sums, int64_t b, int64_t h, Range queries,
                  float* weights, int64_t ldw) {
  const auto heads = scratch_of_thread<WideHeads>(kWideSlot, args, false);
  heads.read_keys(args, b, args.key_head(h));
  heads.q.read(args.q, args.q_at, args.queries[static_cast<size_t>(b)], h, queries);
  weigh_queries(heads.args(args), cut, sums, b, h, queries, weights, ldw);
}

}  // namespace rapt::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rapt::kernels {
namespace {

HWY_EXPORT(backward_f32);
HWY_EXPORT(backward_f64);
HWY_EXPORT(backward_bf16);
HWY_EXPORT(weights_f32);
HWY_EXPORT(weights_f64);
HWY_EXPORT(weights_bf16);

void run(const AttentionArgs<float>& args, const AttentionGrads<float>& grads, const TileCut& cut,
         const BackwardPlan& plan, Range tasks) {
  HWY_DYNAMIC_DISPATCH(backward_f32)(args, grads, cut, plan, tasks);
}
void run(const AttentionArgs<double>& args, const AttentionGrads<double>& grads, const TileCut& cut,
         const BackwardPlan& plan, Range tasks) {
  HWY_DYNAMIC_DISPATCH(backward_f64)(args, grads, cut, plan, tasks);
}
void run(const AttentionArgs<bf16>& args, const AttentionGrads<bf16>& grads, const TileCut& cut,
         const BackwardPlan& plan, Range tasks) {
  HWY_DYNAMIC_DISPATCH(backward_bf16)(args, grads, cut, plan, tasks);
}

template <class T>
void differentiate(const AttentionArgs<T>& args, const AttentionGrads<T>& grads) {
  check_attention(args);
  const TileCut cut = backward_cut(args);
  const int64_t sentences = static_cast<int64_t>(args.queries.size()), heads = sentences * args.H;
  const int64_t items = sentences * args.key_heads();
  const int64_t query_heads = args.H / std::max<int64_t>(args.key_heads(), 1);
  const int64_t needed = BackwardPlan::numbers_needed(items, query_heads);
  int64_t* const numbers = static_cast<int64_t*>(
      thread_scratch(kPlanSlot, static_cast<size_t>(needed + heads + 1) * sizeof(int64_t)));
  int64_t* const groups = args.bias == nullptr ? nullptr : numbers + needed;
  for (int64_t i = 0; groups != nullptr && i < heads; ++i)
    groups[i] = args.bias->gradient_group(i / args.H, i % args.H);
  const BackwardPlan plan(items, query_heads, groups, numbers);
  parallel_ranges(plan.tasks(), items_at_once(args, plan.tasks()), [&](int64_t begin, int64_t end) {
    run(args, grads, cut, plan, {begin, end});
  });
}

void run(const AttentionArgs<float>& args, const TileCut& cut, const SoftmaxSum<float>* sums,
         int64_t b, int64_t h, Range queries, float* weights, int64_t ldw) {
  HWY_DYNAMIC_DISPATCH(weights_f32)(args, cut, sums, b, h, queries, weights, ldw);
}
void run(const AttentionArgs<double>& args, const TileCut& cut, const SoftmaxSum<double>* sums,
         int64_t b, int64_t h, Range queries, double* weights, int64_t ldw) {
  HWY_DYNAMIC_DISPATCH(weights_f64)(args, cut, sums, b, h, queries, weights, ldw);
}
void run(const AttentionArgs<bf16>& args, const TileCut& cut, const SoftmaxSum<float>* sums,
         int64_t b, int64_t h, Range queries, float* weights, int64_t ldw) {
  HWY_DYNAMIC_DISPATCH(weights_bf16)(args, cut, sums, b, h, queries, weights, ldw);
}

template <class T>
void weigh(const AttentionArgs<T>& args, const SoftmaxSum<Precise<T>>* sums, int64_t b, int64_t h,
           Precise<T>* weights, int64_t ldw) {
  check_attention(args);
  TileCut cut = backward_cut(args);
  cut.most_queries = 0;
  parallel_ranges(args.queries[static_cast<size_t>(b)].count, cut.query_tile,
                  [&](int64_t begin, int64_t end) {
                    run(args, cut, sums, b, h, Range{begin, end}, weights, ldw);
                  });
}

}  // namespace

void attention_grad(const AttentionArgs<float>& args, const AttentionGrads<float>& grads) {
  differentiate(args, grads);
}
void attention_grad(const AttentionArgs<double>& args, const AttentionGrads<double>& grads) {
  differentiate(args, grads);
}
void attention_grad(const AttentionArgs<bf16>& args, const AttentionGrads<bf16>& grads) {
  differentiate(args, grads);
}

void attention_weights(const AttentionArgs<float>& args, const SoftmaxSum<float>* sums, int64_t b,
                       int64_t h, float* weights, int64_t ldw) {
  weigh(args, sums, b, h, weights, ldw);
}
void attention_weights(const AttentionArgs<double>& args, const SoftmaxSum<double>* sums, int64_t b,
                       int64_t h, double* weights, int64_t ldw) {
  weigh(args, sums, b, h, weights, ldw);
}
void attention_weights(const AttentionArgs<bf16>& args, const SoftmaxSum<float>* sums, int64_t b,
                       int64_t h, float* weights, int64_t ldw) {
  weigh(args, sums, b, h, weights, ldw);
}

}  // namespace rapt::kernels
#endif
