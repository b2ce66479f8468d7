// The entry points of attention's forward pass: plan, dispatch, threads.
#include "rapt/kernels/attention.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "rapt/base/check.h"
#include "rapt/base/memory.h"
#include "rapt/base/random.h"
#include "rapt/base/thread_pool.h"
#include "rapt/kernels/attention_plan.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rapt/kernels/attention.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.
#include "rapt/kernels/attention_bf16-inl.h"
#include "rapt/kernels/attention_forward-inl.h"
#include "rapt/kernels/attention_forward_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels::HWY_NAMESPACE {

template <class T>
using PieceScratch =
    ScratchOfBoth<ForwardScratch<T>,
                  std::conditional_t<std::is_same_v<T, float>, ForwardTileScratch, NoScratch>>;

template <class T>
void run_piece(const AttentionArgs<T>& args, const TileCut& cut, const ForwardItem& item,
               const PieceScratch<T>& scratch, T* out, const HeadStrides& out_at,
               SoftmaxSum<T>* sums) {
  if constexpr (std::is_same_v<T, float>) {
    const size_t b = static_cast<size_t>(item.b);
    if (cut.parts > 0 && splits_sentence(args.queries[b], args.keys[b]) &&
        TiledForwardPiece(args, cut, item, scratch.tiles, out, out_at, sums).run()) {
      return;
    }
  }
  ForwardPiece<T>(args, cut, item, scratch.plain, out, out_at, sums).run();
}

template <class T>
void run_items(const AttentionArgs<T>& args, const TileCut& cut, const ForwardPlan& plan,
               Range items, T* out, const HeadStrides& out_at, SoftmaxSum<T>* sums) {
  const auto scratch = scratch_of_thread<PieceScratch<T>>(kWorkSlot, args, cut);
  for (int64_t i = items.begin; i < items.end; ++i)
    run_piece(args, cut, plan.item(i), scratch, out, out_at, sums);
}

void forward_f32(const AttentionArgs<float>& args, const TileCut& cut, const ForwardPlan& plan,
                 Range items, float* out, const HeadStrides& out_at, SoftmaxSum<float>* sums) {
  run_items(args, cut, plan, items, out, out_at, sums);
}
void forward_f64(const AttentionArgs<double>& args, const TileCut& cut, const ForwardPlan& plan,
                 Range items, double* out, const HeadStrides& out_at, SoftmaxSum<double>* sums) {
  run_items(args, cut, plan, items, out, out_at, sums);
}
void forward_bf16(const AttentionArgs<bf16>& args, const TileCut& cut, const ForwardPlan& plan,
                  Range items, bf16* out, const HeadStrides& out_at, SoftmaxSum<float>* sums) {
  const auto heads = scratch_of_thread<WideHeads>(kWideSlot, args, false);
  const AttentionArgs<float> wide = heads.args(args);
  const auto scratch = scratch_of_thread<PieceScratch<float>>(kWorkSlot, wide, cut);
  for (int64_t i = items.begin; i < items.end; ++i) {
    const ForwardItem item = plan.item(i);
    const Segment& queries = args.queries[static_cast<size_t>(item.b)];
    heads.read_keys(args, item.b, args.key_head(item.h));
    heads.q.read(args.q, args.q_at, queries, item.h, item.queries);
    run_piece(wide, cut, item, scratch, heads.out.data, heads.out.at(), sums);
    heads.out.write(out, out_at, queries, item.h, item.queries, false);
  }
}

}  // namespace rapt::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rapt::kernels {
namespace {

HWY_EXPORT(forward_f32);
HWY_EXPORT(forward_f64);
HWY_EXPORT(forward_bf16);

void run(const AttentionArgs<float>& args, const TileCut& cut, const ForwardPlan& plan, Range items,
         float* out, const HeadStrides& out_at, SoftmaxSum<float>* sums) {
  HWY_DYNAMIC_DISPATCH(forward_f32)(args, cut, plan, items, out, out_at, sums);
}
void run(const AttentionArgs<double>& args, const TileCut& cut, const ForwardPlan& plan,
         Range items, double* out, const HeadStrides& out_at, SoftmaxSum<double>* sums) {
  HWY_DYNAMIC_DISPATCH(forward_f64)(args, cut, plan, items, out, out_at, sums);
}
void run(const AttentionArgs<bf16>& args, const TileCut& cut, const ForwardPlan& plan, Range items,
         bf16* out, const HeadStrides& out_at, SoftmaxSum<float>* sums) {
  HWY_DYNAMIC_DISPATCH(forward_bf16)(args, cut, plan, items, out, out_at, sums);
}

template <class T>
void attend(const AttentionArgs<T>& args, T* out, const HeadStrides& out_at,
            SoftmaxSum<Precise<T>>* sums) {
  check_attention(args);
  const TileCut cut = forward_cut(args);
  int64_t* const first_item =
      static_cast<int64_t*>(thread_scratch(kPlanSlot, (args.queries.size() + 1) * sizeof(int64_t)));
  const ForwardPlan plan(args.queries, args.H, cut.most_queries, first_item);
  const int64_t at_once = items_at_once(args, plan.items());
  parallel_ranges(plan.items(), at_once, [&](int64_t begin, int64_t end) {
    run(args, cut, plan, {begin, end}, out, out_at, sums);
  });
}

}  // namespace

void attention(const AttentionArgs<float>& args, float* out, const HeadStrides& out_at,
               SoftmaxSum<float>* sums) {
  attend(args, out, out_at, sums);
}
void attention(const AttentionArgs<double>& args, double* out, const HeadStrides& out_at,
               SoftmaxSum<double>* sums) {
  attend(args, out, out_at, sums);
}
void attention(const AttentionArgs<bf16>& args, bf16* out, const HeadStrides& out_at,
               SoftmaxSum<float>* sums) {
  attend(args, out, out_at, sums);
}

}  // namespace rapt::kernels
#endif
