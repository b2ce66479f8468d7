#include "rapt/nn/torch/multihead_attention.h"

#include <cmath>

#include "rapt/base/check.h"
#include "rapt/nn/torch/batch.h"
#include "rapt/nn/torch/initialisation.h"
#include "rapt/nn/torch/names.h"
#include "rapt/ops/arrange.h"

namespace rapt::nn::torch {
namespace {

constexpr const char* kWho = "MultiheadAttention";

nn::AttentionOptions attention_options(const MultiheadAttentionOptions& o) {
  const auto positive = [](const char* name, int64_t value) {
    RAPT_CHECK(value >= 1, "{}: expected {} of at least 1, got {}", kWho, name, value);
  };
  positive("embed_dim", o.embed_dim);
  positive("num_heads", o.num_heads);
  positive("kdim", o.kdim.value_or(1));
  positive("vdim", o.vdim.value_or(1));
  RAPT_CHECK(o.embed_dim % o.num_heads == 0,
             "{}: expected num_heads that divide embed_dim {}, got {}", kWho, o.embed_dim,
             o.num_heads);
  RAPT_CHECK(o.dropout >= 0 && o.dropout < 1, "{}: expected dropout in [0, 1), got {}", kWho,
             o.dropout);
  return {.d_model = o.embed_dim,
          .nhead = o.num_heads,
          .dropout = o.dropout,
          .bias = o.bias,
          .kdim = o.kdim.value_or(0),
          .vdim = o.vdim.value_or(0)};
}

}  // namespace

MultiheadAttention::MultiheadAttention(const MultiheadAttentionOptions& options, const Init& init)
    : options_(options), dtype_(init.dtype), attention_(attention_options(options), init) {
  const int64_t E = options.embed_dim;
  if (options.add_bias_kv) {
    const double deviation = 1 / std::sqrt(static_cast<double>(E));
    bias_k_ = init.normal({1, 1, E}, deviation);
    bias_v_ = init.normal({1, 1, E}, deviation);
  }
  if (init.rng != nullptr) draw_in_projections(attention_, *init.rng);
}

KeyValues MultiheadAttention::with_added_keys(const KeyValues& memory, const Pass& pass) const {
  KeyValues all = memory;
  const auto add = [&](const Tensor& key, const Tensor& value) {
    all.keys = append_row(all.keys, all.rows, key);
    all.values = append_row(all.values, all.rows, value);
    std::vector<Segment> segments(all.rows.segments().begin(), all.rows.segments().end());
    for (size_t b = 0; b < segments.size(); ++b) {
      segments[b].row += static_cast<int64_t>(b);
      segments[b].count += 1;
    }
    all.rows = Rows(std::move(segments));
  };
  if (options_.add_bias_kv) add(pass.use(bias_k_), pass.use(bias_v_));
  if (options_.add_zero_attn) add({}, {});
  return all;
}

MultiheadAttention::Result MultiheadAttention::forward(const Tensor& query, const Tensor& key,
                                                       const Tensor& value,
                                                       const MultiheadAttentionArguments& arguments,
                                                       const Pass& pass) const {
  const int64_t E = options_.embed_dim;
  const BatchLayout layout{is_batched(kWho, "query", query), options_.batch_first};
  const auto rows_of = [&](const char* name, const Tensor& x, int64_t width) {
    return as_rows(kWho, name, x, layout, width, dtype_);
  };
  const Sequence q = rows_of("query", query, E);
  Sequence k = rows_of("key", key, options_.kdim.value_or(E));
  Sequence v = rows_of("value", value, options_.vdim.value_or(E));
  RAPT_CHECK(k.N == q.N, "{}: expected a key with the batch size of query, {}, got {}", kWho, q.N,
             k.N);
  RAPT_CHECK(v.N == k.N && v.T == k.T,
             "{}: expected a value of as many rows as key, {} x {}, got {} x {}", kWho, k.N, k.T,
             v.N, v.T);
  if (key.same_view(query)) k.rows = q.rows;
  if (value.same_view(key)) v.rows = k.rows;

  const AttentionSizes sizes{q.N,
                             options_.num_heads,
                             q.T,
                             k.T,
                             layout.batched,
                             dtype_,
                             int64_t{options_.add_bias_kv} + options_.add_zero_attn};
  const ScoreTerms terms = score_terms({.who = kWho,
                                        .attn_mask = arguments.attn_mask,
                                        .key_padding_mask = arguments.key_padding_mask,
                                        .is_causal = arguments.is_causal},
                                       sizes);
  const Attention::Projections projected =
      attention_.project(q.rows, k.rows, v.rows, k.sentences(key_position(q.T, k.T)), pass);
  const Attention::Result result = attention_.attend_projected(
      projected.queries, q.sentences(query_position(q.T, k.T)),
      with_added_keys(projected.memory, pass), terms, arguments.need_weights, pass);
  return {as_sequence(result.output, q, layout),
          arguments.need_weights
              ? shaped_weights(result.weights, sizes, arguments.average_attn_weights)
              : Tensor()};
}

void MultiheadAttention::visit(const Visitor& visitor, const std::string& prefix) const {
  visit_by_official_names(attention_, LayerKind::encoder, visitor, prefix);
  if (options_.add_bias_kv) {
    visitor({join_name(prefix, "bias_k"), bias_k_, 0, 1});
    visitor({join_name(prefix, "bias_v"), bias_v_, 0, 1});
  }
}

}  // namespace rapt::nn::torch
