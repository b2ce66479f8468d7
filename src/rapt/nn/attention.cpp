#include "rapt/nn/attention.h"

#include "rapt/base/check.h"
#include "rapt/base/checked.h"
#include "rapt/ops/attention.h"

namespace rapt::nn {

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
  if (options.d_qk == 0) options.d_qk = options.d_model / options.nhead;
  if (options.d_v == 0) options.d_v = options.d_model / options.nhead;
  return options;
}

Attention::Attention(const AttentionOptions& options, const Init& init)
    : options_(checked(options)),
      qk_(checked_mul(options_.nhead, options_.d_qk, "Attention: nhead x d_qk")),
      v_(checked_mul(options_.nhead, options_.d_v, "Attention: nhead x d_v")),
      in_(options_.d_model, 2 * qk_ + v_, options_.bias, init),
      out_(v_, options_.d_model, options_.bias, init) {}

Attention::Heads Attention::split(const Tensor& joined) const {
  const int64_t N = joined.dim(0), H = options_.nhead;
  return {joined.columns(0, qk_).reshape({N, H, options_.d_qk}),
          joined.columns(qk_, qk_).reshape({N, H, options_.d_qk}),
          joined.columns(2 * qk_, v_).reshape({N, H, options_.d_v})};
}

Tensor Attention::forward(const Tensor& query, const Rows& q, const Tensor& memory, const Rows& k,
                          const Mask& mask, const Pass& pass) const {
  if (query.raw() != memory.raw() || !query.same_place(memory))
    return attend(query, q, project(memory, k, pass), mask, pass);
  const auto [queries, keys, values] =
      split(in_.forward(query, pass));  // one product for all three
  return context(queries, q, {keys, values, k}, mask, pass);
}

KeyValues Attention::project(const Tensor& memory, const Rows& k, const Pass& pass) const {
  const Tensor joined = in_.forward(memory, qk_, qk_ + v_, pass);  // (Nk, H Dk + H Dv)
  const int64_t N = joined.dim(0), H = options_.nhead;
  return {joined.columns(0, qk_).reshape({N, H, options_.d_qk}),
          joined.columns(qk_, v_).reshape({N, H, options_.d_v}), k};
}

Tensor Attention::attend(const Tensor& query, const Rows& q, const KeyValues& memory,
                         const Mask& mask, const Pass& pass) const {
  const Tensor queries = in_.forward(query, 0, qk_, pass);  // (Nq, H Dk)
  return context(queries.reshape({queries.dim(0), options_.nhead, options_.d_qk}), q, memory, mask,
                 pass);
}

Tensor Attention::step(const Tensor& x, const Rows& rows, KeyValueCache& cache, const Mask& mask,
                       const Pass& pass) const {
  const auto [queries, keys, values] = split(in_.forward(x, pass));
  cache.append(keys, values, rows);
  return context(queries, rows, cache.contents(), mask, pass);
}

Tensor Attention::context(const Tensor& queries, const Rows& q, const KeyValues& memory,
                          const Mask& mask, const Pass& pass) const {
  const rapt::AttentionOptions how{.dropout = pass.scope("weights").dropout(options_.dropout)};
  Tensor context;  // (Nq, H, Dv)
  if (pass.wants_weights()) {
    AttentionResult result =
        attention_with_weights(queries, q, memory.keys, memory.values, memory.rows, mask, how);
    pass.give_weights(result.weights);
    context = result.context;
  } else {
    context = attention(queries, q, memory.keys, memory.values, memory.rows, mask, how);
  }
  return out_.forward(context.reshape({context.dim(0), v_}), pass);  // (Nq, C)
}

void Attention::visit(const Visitor& visitor, const std::string& prefix) const {
  const auto stacked = [&](const char* what, const Parameter& parameter) {
    visitor({join_name(prefix, std::string("query.") + what), parameter, 0, qk_});
    visitor({join_name(prefix, std::string("key.") + what), parameter, qk_, qk_});
    visitor({join_name(prefix, std::string("value.") + what), parameter, 2 * qk_, v_});
  };
  stacked("weight", in_.weight());
  if (options_.bias) stacked("bias", in_.bias());
  out_.visit(visitor, join_name(prefix, "output"));
}

}  // namespace rapt::nn
