// torch.nn.functional.scaled_dot_product_attention, with its arguments and defaults.
#pragma once

#include <optional>

#include "rapt/tensor/pass.h"

namespace rapt::nn::torch {

struct ScaledDotProductAttentionOptions {
  // Broadcast to (N, ..., L, S). A bool tensor: true lets a query see a key (the opposite of the
  // masks of MultiheadAttention). Or a float tensor of the query's type (f32 for bf16) that is
  // added to the scores, differentiated if it is recorded; minus infinity hides a key as false
  // does.
  Tensor attn_mask = {};
  // Of the weights; acts whenever it is above 0, whether the pass trains or not, by the pass's
  // seed, step and path.
  double dropout_p = 0.0;
  // A query sees no key at a later position. The last query stands at the last key: query i sees
  // keys up to i + S - L. (The original aligns the first ones instead: the same where L = S, but
  // with L < S not what the last rows of a whole computation are, pytorch/pytorch#108108.)
  bool is_causal = false;
  std::optional<double> scale = {};  // of the scores; unset: 1 / sqrt(E)
  // Keys and values may have fewer heads Hk than the query's H, which Hk divides: query head h uses
  // key head h / (H / Hk), none is copied.
  bool enable_gqa = false;
};

// softmax(scale query key^T + mask) value, Vaswani et al. 2017, section 3.2.1.
//
// query (N, ..., H, L, E), key (N, ..., H, S, E), value (N, ..., H, S, Ev) -> (N, ..., H, L, Ev),
// of f32, f64 or bf16. There may be up to four leading axes, or none; they must agree, but for the
// heads with enable_gqa. A query that may see no key gets zeros (the original gives NaN in some of
// its paths, pytorch/pytorch#41508), also where S is 0; L and N may be 0. Memory grows with L + S,
// not L x S.
//
// Throws Error that names the argument, what was expected and what came: for another rank or type,
// shapes that do not fit, no heads, E or Ev of 0, is_causal beside attn_mask (as the original
// does), a scale that is not finite, dropout_p outside [0, 1).
Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const ScaledDotProductAttentionOptions& options = {},
                                    const Pass& pass = Pass());

}  // namespace rapt::nn::torch
