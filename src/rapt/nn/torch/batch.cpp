#include "rapt/nn/torch/batch.h"

#include <limits>

#include "rapt/base/check.h"
#include "rapt/ops/arrange.h"
#include "rapt/ops/attention.h"
#include "rapt/tensor/dispatch.h"

namespace rapt::nn::torch {
namespace {

std::string described(const Tensor& x) {
  return x.defined() ? fmt::format("{} of {}", x.shape().text(), dtype_name(x.dtype())) : "none";
}

bool is_mask(const Tensor& x, DType dtype) {
  return x.dtype() == DType::boolean || x.dtype() == dtype;
}

bool later(const AttentionSizes& sizes, int64_t query, int64_t key) {
  return key + key_position(sizes.L, sizes.S) > query + query_position(sizes.L, sizes.S);
}

// Throws unless a mask (.., L, S) hides the later keys and nothing else.
void check_causal(const MaskArguments& a, const AttentionSizes& sizes) {
  const Tensor mask = a.attn_mask.contiguous_copy();
  const int64_t L = sizes.L, S = sizes.S;
  for (int64_t at = 0; at < mask.numel(); ++at) {
    const int64_t i = at / S % L, j = at % S;
    const bool hide = later(sizes, i, j);
    const bool agrees =
        mask.dtype() == DType::boolean
            ? (mask.data<uint8_t>()[at] != 0) == hide
            : dispatch_float(mask.dtype(), a.who, [&](auto tag) {
                using T = decltype(tag);
                const T value = mask.data<T>()[at];
                return hide ? value == -std::numeric_limits<T>::infinity() : value == T(0);
              });
    RAPT_CHECK(agrees,
               "{}: {} is true, but {} lets query {} of {} {} key {} of {}; pass only one of them "
               "(causality is by position: key <= query + keys - queries)",
               a.who, a.is_causal_name, a.attn_mask_name, i, L, hide ? "see" : "not plainly see", j,
               S);
  }
}

// (L, S + added), true where the key is later.
Tensor later_keys(const AttentionSizes& sizes) {
  Tensor drop = Tensor::zeros({sizes.L, sizes.S + sizes.added_keys}, DType::boolean);
  uint8_t* value = drop.data<uint8_t>();
  for (int64_t i = 0; i < sizes.L; ++i) {
    for (int64_t j = 0; j < sizes.S; ++j)
      value[i * (sizes.S + sizes.added_keys) + j] = later(sizes, i, j);
  }
  return drop;
}

// A mask over S keys as one over S + added keys: the added ones are seen.
Tensor with_added(Tensor mask, const AttentionSizes& sizes) {
  for (int64_t i = 0; i < sizes.added_keys; ++i) mask = append_column(mask);
  return mask;
}

// Adds a mask, in which true hides, or a float one.
void add(ScoreTerms& terms, const Tensor& mask) {
  if (mask.dtype() == DType::boolean) {
    terms.mask = terms.mask & Mask::drop(mask);
  } else {
    terms.bias = terms.bias + ScoreBias(mask);
  }
}

void add_attn_mask(ScoreTerms& terms, const MaskArguments& a, const AttentionSizes& s) {
  const Tensor& mask = a.attn_mask;
  const int64_t heads = s.batched ? s.N * s.H : s.H;
  const Shape one{s.L, s.S}, each{heads, s.L, s.S};
  RAPT_CHECK(is_mask(mask, s.dtype) && (mask.shape() == one || mask.shape() == each),
             "{}: expected {} {} or {} of bool or {}, got {}", a.who, a.attn_mask_name, one.text(),
             each.text(), dtype_name(s.dtype), described(mask));
  if (a.is_causal) {
    check_causal(a, s);
    if (!mask.recorded()) return;  // it says nothing new
  }
  const Tensor wide = with_added(mask, s);
  add(terms, mask.rank() == 2 ? wide : wide.reshape({s.N, s.H, s.L, s.S + s.added_keys}));
}

void add_key_padding_mask(ScoreTerms& terms, const MaskArguments& a, const AttentionSizes& s) {
  const Tensor& mask = a.key_padding_mask;
  const Shape wanted = s.batched ? Shape{s.N, s.S} : Shape{s.S};
  RAPT_CHECK(is_mask(mask, s.dtype) && mask.shape() == wanted,
             "{}: expected {} {} of bool or {}, got {}", a.who, a.key_padding_mask_name,
             wanted.text(), dtype_name(s.dtype), described(mask));
  add(terms, with_added(mask, s).reshape({s.N * (s.S + s.added_keys)}));
}

}  // namespace

Rows equal_rows(int64_t N, int64_t T, int64_t first) {
  if (first == 0) return Rows::equal(N, T);
  std::vector<Segment> segments;
  for (int64_t b = 0; b < N; ++b) segments.push_back({b * T, T, first, static_cast<uint64_t>(b)});
  return Rows(std::move(segments));
}

bool is_batched(const char* who, const char* name, const Tensor& x) {
  RAPT_CHECK(x.defined() && (x.rank() == 2 || x.rank() == 3),
             "{}: expected {} with 3 axes, or with 2 without a batch, got {}", who, name,
             described(x));
  return x.rank() == 3;
}

Sequence as_rows(const char* who, const char* name, const Tensor& x, const BatchLayout& layout,
                 int64_t width, DType dtype) {
  const char* wanted = !layout.batched      ? "length"
                       : layout.batch_first ? "batch, length"
                                            : "length, batch";
  RAPT_CHECK(x.defined() && x.dtype() == dtype && x.rank() == (layout.batched ? 3 : 2) &&
                 x.dim(-1) == width,
             "{}: expected {} ({}, {}) of {}, got {}", who, name, wanted, width, dtype_name(dtype),
             described(x));
  if (!layout.batched) return {x, 1, x.dim(0)};
  const int64_t N = x.dim(layout.batch_first ? 0 : 1), T = x.dim(layout.batch_first ? 1 : 0);
  return {(layout.batch_first ? x : swap_axes(x)).reshape({N * T, width}), N, T};
}

Tensor as_sequence(const Tensor& rows, const Sequence& like, const BatchLayout& layout) {
  if (!layout.batched) return rows;
  const Tensor x = rows.reshape({like.N, like.T, rows.dim(1)});
  return layout.batch_first ? x : swap_axes(x);
}

ScoreTerms score_terms(const MaskArguments& arguments, const AttentionSizes& sizes) {
  ScoreTerms terms;
  if (arguments.is_causal) {
    terms.mask = sizes.added_keys == 0 ? Mask::causal() : Mask::drop(later_keys(sizes));
  }
  if (arguments.attn_mask.defined()) add_attn_mask(terms, arguments, sizes);
  if (arguments.key_padding_mask.defined()) add_key_padding_mask(terms, arguments, sizes);
  return terms;
}

Tensor shaped_weights(const Tensor& weights, const AttentionSizes& s, bool average) {
  const int64_t S = s.S + s.added_keys;
  const Tensor whole = s.N > 0 ? weights : Tensor::empty({0, s.H, s.L, S}, weights.dtype());
  if (average) {
    const Tensor mean = mean_heads(whole);
    return s.batched ? mean : mean.reshape({s.L, S});
  }
  return s.batched ? whole : whole.reshape({s.H, s.L, S});
}

}  // namespace rapt::nn::torch
