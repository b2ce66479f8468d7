// Attention in bf16, per target: one head of one sentence at a time is widened into the thread's
// scratch, where the f32 kernel finds it as if it were the whole.
#if defined(RAPT_KERNELS_ATTENTION_BF16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_KERNELS_ATTENTION_BF16_INL_H_
#undef RAPT_KERNELS_ATTENTION_BF16_INL_H_
#else
#define RAPT_KERNELS_ATTENTION_BF16_INL_H_
#endif

#include <algorithm>
#include <span>

#include "rapt/kernels/attention_plan.h"
#include "rapt/kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows of one head in f32, side by side: every head of every sentence is read from here.
struct WideHead {
  float* data;
  int64_t D;

  HeadStrides at() const { return {D, 0, 0}; }

  // Takes rows [rows.begin, rows.end) of a sentence's head.
  void read(const bf16* from, const HeadStrides& from_at, const Segment& sentence, int64_t head,
            Range rows) const {
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      MapRow(from + from_at.at(sentence, head, i), data + i * D, D,
             [](auto, auto v) HWY_ATTR { return v; });
    }
  }
  // Rounds them to where they belong, or adds to what is there first.
  void write(bf16* to, const HeadStrides& to_at, const Segment& sentence, int64_t head, Range rows,
             bool add) const {
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      bf16* const row = to + to_at.at(sentence, head, i);
      if (add) {
        MapRow(data + i * D, row, row, D,
               [](auto, auto u, auto v) HWY_ATTR { return hn::Add(u, v); });
      } else {
        MapRow(data + i * D, row, D, [](auto, auto v) HWY_ATTR { return v; });
      }
    }
  }
};

inline int64_t longest_of(std::span<const Segment> sentences) {
  int64_t longest = 0;
  for (const Segment& sentence : sentences) longest = std::max(longest, sentence.count);
  return longest;
}

// What a head of any sentence of a call needs; gradients have room where there are some.
struct WideHeads {
  WideHeads(Carver& carver, const AttentionArgs<bf16>& args, bool gradients) {
    const int64_t queries = longest_of(args.queries), keys = longest_of(args.keys);
    const auto take = [&](int64_t rows, int64_t D) {
      return WideHead{carver.take<float>(rows * D), D};
    };
    q = take(queries, args.Dk);
    k = take(keys, args.Dk);
    v = take(keys, args.Dv);
    out = take(queries, args.Dv);
    if (!gradients) return;
    d_out = take(queries, args.Dv);
    dq = take(queries, args.Dk);
    dk = take(keys, args.Dk);
    dv = take(keys, args.Dv);
  }

  // The same call of the f32 kernels.
  AttentionArgs<float> args(const AttentionArgs<bf16>& a) const {
    AttentionArgs<float> wide;
    wide.q = q.data, wide.q_at = q.at();
    wide.k = k.data, wide.k_at = k.at();
    wide.v = v.data, wide.v_at = v.at();
    wide.queries = a.queries, wide.keys = a.keys;
    wide.H = a.H, wide.Dk = a.Dk, wide.Dv = a.Dv, wide.Hk = a.Hk;
    wide.scale = a.scale;
    wide.mask = a.mask;
    wide.bias = a.bias;
    wide.dropout = a.dropout;
    wide.split = a.split;
    wide.key_tile = a.key_tile, wide.query_tile = a.query_tile;
    return wide;
  }
  void read_keys(const AttentionArgs<bf16>& a, int64_t b, int64_t key_head) const {
    const Segment& keys = a.keys[static_cast<size_t>(b)];
    k.read(a.k, a.k_at, keys, key_head, {0, keys.count});
    v.read(a.v, a.v_at, keys, key_head, {0, keys.count});
  }

  WideHead q{}, k{}, v{}, out{};
  WideHead d_out{}, dq{}, dk{}, dv{};
};

}  // namespace rapt::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
