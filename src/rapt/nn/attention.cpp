#include "rapt/nn/attention.h"

#include <cmath>

#include "rapt/base/check.h"
#include "rapt/base/checked.h"
#include "rapt/ops/attention.h"

namespace rapt::nn {
namespace {

double bound_of(int64_t in) { return 1 / std::sqrt(static_cast<double>(in)); }

}  // namespace

AttentionOptions checked(AttentionOptions options) {
  RAPT_CHECK(options.d_model > 0, "Attention: expected d_model of at least 1, got {}",
             options.d_model);
  RAPT_CHECK(options.nhead > 0, "Attention: expected nhead of at least 1, got {}", options.nhead);
  RAPT_CHECK(options.d_qk >= 0 && options.d_v >= 0,
             "Attention: expected d_qk and d_v of at least 0, got {} and {}", options.d_qk,
             options.d_v);
  RAPT_CHECK((options.d_qk > 0 && options.d_v > 0) || options.d_model % options.nhead == 0,
             "Attention: nhead {} does not divide d_model {}; choose another or set d_qk and d_v",
             options.nhead, options.d_model);
  RAPT_CHECK(options.dropout >= 0 && options.dropout < 1,
             "Attention: expected dropout in [0, 1), got {}", options.dropout);
  RAPT_CHECK(options.kdim >= 0 && options.vdim >= 0,
             "Attention: expected kdim and vdim of at least 0, got {} and {}", options.kdim,
             options.vdim);
  if (options.kdim == 0) options.kdim = options.d_model;
  if (options.vdim == 0) options.vdim = options.d_model;
  if (options.d_qk == 0) options.d_qk = options.d_model / options.nhead;
  if (options.d_v == 0) options.d_v = options.d_model / options.nhead;
  return options;
}

Attention::Attention(const AttentionOptions& options, const Init& init)
    : options_(checked(options)),
      qk_(checked_mul(options_.nhead, options_.d_qk, "Attention: nhead x d_qk")),
      v_(checked_mul(options_.nhead, options_.d_v, "Attention: nhead x d_v")),
      weights_(in_weights(init)),
      bias_(options_.bias ? init.uniform({2 * qk_ + v_}, bound_of(options_.d_model)) : Parameter()),
      out_(v_, options_.d_model, options_.bias, init) {}

std::vector<Parameter> Attention::in_weights(const Init& init) const {
  const int64_t C = options_.d_model, kdim = options_.kdim, vdim = options_.vdim;
  if (kdim == C && vdim == C) return {init.uniform({2 * qk_ + v_, C}, bound_of(C))};
  return {init.uniform({qk_, C}, bound_of(C)), init.uniform({qk_, kdim}, bound_of(kdim)),
          init.uniform({v_, vdim}, bound_of(vdim))};
}

Tensor Attention::product(const Tensor& x, Part part, const Pass& pass) const {
  if (stacked()) return linear(x, weights_[0], bias_, part.begin, part.count, pass);
  const size_t which = part.begin == 0 ? 0 : part.begin == qk_ ? 1 : 2;
  const Tensor bias = options_.bias ? pass.use(bias_, part.begin, part.count) : Tensor();
  return linear(x, pass.use_matrix(weights_[which]), bias);
}

// Columns [begin, begin + H width) of x (N, ..) -> (N, H, width)
Tensor Attention::heads(const Tensor& x, int64_t begin, int64_t width) const {
  return x.columns(begin, options_.nhead * width).reshape({x.dim(0), options_.nhead, width});
}

Attention::Projections Attention::project(const Tensor& query, const Tensor& key,
                                          const Tensor& value, const Rows& k,
                                          const Pass& pass) const {
  const int64_t Dk = options_.d_qk, Dv = options_.d_v;
  const bool one_memory = stacked() && key.same_view(value);
  if (one_memory && query.same_view(key)) {
    const Tensor x = product(query, {0, 2 * qk_ + v_}, pass);
    return {heads(x, 0, Dk), {heads(x, qk_, Dk), heads(x, 2 * qk_, Dv), k}};
  }
  const Tensor queries_alone = product(query, queries(), pass);
  if (one_memory) {
    return {heads(queries_alone, 0, Dk), project(key, k, pass)};
  }
  return {
      heads(queries_alone, 0, Dk),
      {heads(product(key, keys(), pass), 0, Dk), heads(product(value, values(), pass), 0, Dv), k}};
}

KeyValues Attention::project(const Tensor& memory, const Rows& k, const Pass& pass) const {
  const Tensor x = product(memory, {qk_, qk_ + v_}, pass);  // (Nk, H Dk + H Dv)
  return {heads(x, 0, options_.d_qk), heads(x, qk_, options_.d_v), k};
}

Tensor Attention::forward(const Tensor& query, const Rows& q, const Tensor& memory, const Rows& k,
                          const ScoreTerms& terms, const Pass& pass) const {
  const Projections p = project(query, memory, memory, k, pass);
  return attend_projected(p.queries, q, p.memory, terms, false, pass).output;
}

Tensor Attention::attend(const Tensor& query, const Rows& q, const KeyValues& memory,
                         const ScoreTerms& terms, const Pass& pass) const {
  const Tensor queries_alone = heads(product(query, queries(), pass), 0, options_.d_qk);
  return attend_projected(queries_alone, q, memory, terms, false, pass).output;
}

Tensor Attention::step(const Tensor& x, const Rows& rows, KeyValueCache& cache,
                       const ScoreTerms& terms, const Pass& pass) const {
  const Projections p = project(x, x, x, rows, pass);
  cache.append(p.memory.keys, p.memory.values, rows);
  return attend_projected(p.queries, rows, cache.contents(), terms, false, pass).output;
}

Attention::Result Attention::attend_projected(const Tensor& queries, const Rows& q,
                                              const KeyValues& memory, const ScoreTerms& terms,
                                              bool want_weights, const Pass& pass) const {
  const rapt::AttentionOptions how{.dropout = pass.scope("weights").dropout(options_.dropout),
                                   .bias = terms.bias};
  AttentionResult result;  // context (Nq, H, Dv)
  if (want_weights || pass.wants_weights()) {
    result = attention_with_weights(queries, q, memory.keys, memory.values, memory.rows, terms.mask,
                                    how);
    if (pass.wants_weights()) pass.give_weights(result.weights);
  } else {
    result.context =
        attention(queries, q, memory.keys, memory.values, memory.rows, terms.mask, how);
  }
  const Tensor& context = result.context;
  return {out_.forward(context.reshape({context.dim(0), v_}), pass), result.weights};
}

void Attention::visit(const Visitor& visitor, const std::string& prefix) const {
  const auto part = [&](const char* name, Part rows, size_t which) {
    visitor({join_name(prefix, name), weights_[stacked() ? 0 : which], stacked() ? rows.begin : 0,
             rows.count});
  };
  part("query.weight", queries(), 0);
  part("key.weight", keys(), 1);
  part("value.weight", values(), 2);
  if (options_.bias) {
    visitor({join_name(prefix, "query.bias"), bias_, queries().begin, queries().count});
    visitor({join_name(prefix, "key.bias"), bias_, keys().begin, keys().count});
    visitor({join_name(prefix, "value.bias"), bias_, values().begin, values().count});
  }
  out_.visit(visitor, join_name(prefix, "output"));
}

}  // namespace rapt::nn
