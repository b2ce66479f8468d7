#include "rapt/ops/attention.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "rapt/base/profile.h"
#include "rapt/kernels/attention.h"
#include "rapt/kernels/elementwise.h"
#include "rapt/ops/dense_bias.h"
#include "rapt/tensor/bytes.h"
#include "rapt/tensor/dispatch.h"

namespace rapt {
namespace {

// Where the heads of (N, H, D) or (B, H, T, D) lie.
kernels::HeadStrides heads_of(const Tensor& x) {
  return x.rank() == 3 ? kernels::HeadStrides::packed(x.row_stride(), x.dim(2))
                       : kernels::HeadStrides::heads_first(x.dim(1), x.dim(2), x.dim(3));
}

// One call of attention: its tensors and what the kernels are told about them.
struct Call {
  Tensor q, k, v;
  std::vector<Tensor> bias;  // the terms, and where their elements lie
  std::vector<ScoreStrides> bias_at;
  Rows queries, keys;
  Mask mask;
  Mask::View view;
  AttentionOptions options;
  int64_t H, Hk, Dk, Dv;

  // Scores of all heads that count as work: half where a sentence's causality leaves half.
  double scores() const {
    const bool causal = view.mask(mask).causal;
    double pairs = 0;
    for (int64_t b = 0; b < queries.sentences(); ++b) {
      const auto Tq = static_cast<double>(queries[b].count);
      const auto Tk = static_cast<double>(keys[b].count);
      pairs += causal && Tq == Tk ? Tq * (Tq + 1) / 2 : Tq * Tk;
    }
    return pairs * static_cast<double>(H);
  }
  // Multiplications and additions of so many products of the scores with rows of Dk and of Dv.
  double flops(int64_t with_k, int64_t with_v) const {
    return 2 * scores() * static_cast<double>(with_k * Dk + with_v * Dv);
  }

  template <class T>
  kernels::AttentionArgs<T> args(kernels::ScoreBias<Precise<T>>* score_bias) const {
    kernels::AttentionArgs<T> a;
    a.q = q.data<T>();
    a.k = k.data<T>();
    a.v = v.data<T>();
    a.q_at = heads_of(q);
    a.k_at = heads_of(k);
    a.v_at = heads_of(v);
    a.queries = queries.segments();
    a.keys = keys.segments();
    a.H = H;
    a.Hk = Hk;
    a.Dk = Dk;
    a.Dv = Dv;
    a.scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(Dk)));
    a.mask = view.mask(mask);
    a.bias = score_bias;
    a.dropout = options.dropout;
    a.split = options.split;
    a.key_tile = options.key_tile;
    a.query_tile = options.query_tile;
    return a;
  }
};

// Whether the rows of a (B, H, T, D) tensor are these sentences.
void check_heads_first(const char* what, const Tensor& x, const Rows& rows) {
  RAPT_CHECK(x.contiguous(), "attention: expected {} (B, H, T, D) without gaps", what);
  RAPT_CHECK(rows.is_packed() && rows.equal_lengths() && rows.sentences() == x.dim(0) &&
                 rows.tokens() == x.dim(0) * x.dim(2),
             "attention: expected {} sentences of {} tokens each for {} {}, got {} with {} tokens",
             x.dim(0), x.dim(2), what, x.shape().text(), rows.sentences(), rows.tokens());
}

Call check(const Tensor& q, const Rows& queries, const Tensor& k, const Tensor& v, const Rows& keys,
           const Mask& mask, const AttentionOptions& options) {
  const bool heads_first = q.rank() == 4;
  RAPT_CHECK((q.rank() == 3 || heads_first) && k.rank() == q.rank() && v.rank() == q.rank(),
             "attention: expected q (Nq, H, Dk), k (Nk, Hk, Dk), v (Nk, Hk, Dv) or q (B, H, Tq, "
             "Dk), k (B, Hk, Tk, Dk), v (B, Hk, Tk, Dv), got {}, {}, {}",
             q.shape().text(), k.shape().text(), v.shape().text());
  const int64_t H = q.dim(1), Hk = k.dim(1), Dk = q.dim(-1), Dv = v.dim(-1);
  RAPT_CHECK(H >= 1 && Hk >= 1 && Dk >= 1 && Dv >= 1,
             "attention: expected at least one head and channel, got H {} Hk {} Dk {} Dv {}", H, Hk,
             Dk, Dv);
  RAPT_CHECK(
      H % Hk == 0 && v.dim(1) == Hk,
      "attention: expected {} heads of keys and of values, or fewer that divide it, got keys "
      "with {} and values with {}",
      H, Hk, v.dim(1));
  RAPT_CHECK(k.dim(-1) == Dk, "attention: expected keys of width {} a head, got {}", Dk, k.dim(-1));
  RAPT_CHECK(k.dim(0) == v.dim(0) && (!heads_first || k.dim(2) == v.dim(2)),
             "attention: expected as many values as keys, got {} and {}", v.shape().text(),
             k.shape().text());
  RAPT_CHECK(q.dtype() == k.dtype() && q.dtype() == v.dtype(),
             "attention: expected one type, got {}, {}, {}", dtype_name(q.dtype()),
             dtype_name(k.dtype()), dtype_name(v.dtype()));
  RAPT_CHECK(queries.sentences() == keys.sentences(),
             "attention: expected as many sentences of keys as of queries, got {} and {}",
             keys.sentences(), queries.sentences());
  if (heads_first) {
    check_heads_first("q", q, queries);
    check_heads_first("k", k, keys);
    check_heads_first("v", v, keys);
  } else {
    RAPT_CHECK(queries.tokens() == q.dim(0), "attention: expected {} rows of queries, got {}",
               queries.tokens(), q.dim(0));
    RAPT_CHECK(keys.tokens() <= k.dim(0), "attention: expected {} rows of keys, got {}",
               keys.tokens(), k.dim(0));
  }
  const double scale = options.scale.value_or(1);
  RAPT_CHECK(std::isfinite(scale), "attention: expected a finite scale, got {}", scale);
  Call call{q.detach(), k.detach(), v.detach(), {}, {}, queries, keys,
            mask,       {},         options,    H,  Hk, Dk,      Dv};
  for (const Tensor& term : options.bias.terms()) {
    RAPT_CHECK(term.dtype() == precise(q.dtype()), "attention: expected a bias of {}, got {}",
               dtype_name(precise(q.dtype())), dtype_name(term.dtype()));
    call.bias.push_back(term.detach());
    call.bias_at.push_back(score_strides("attention", "bias", term.shape(), queries, keys, H));
  }
  call.options.bias = {};  // recorded handles would keep what they were made from
  call.view = mask.view("attention", queries, keys, H);
  return call;
}

// The bias of the kernel; with a sink, input 3 + i is the i-th term, and what is wanted of their
// gradients is collected there (`holders` keeps the buffers).
template <class T>
std::optional<DenseBias<T>> dense_bias(const Call& call, Sink* d = nullptr,
                                       std::vector<Tensor>* holders = nullptr) {
  if (call.bias.empty()) return {};
  DenseBias<T> bias(call.keys.segments(), call.H);
  for (size_t i = 0; i < call.bias.size(); ++i) {
    T* gradient = nullptr;
    const int input = 3 + static_cast<int>(i);
    if (d != nullptr && d->wants(input)) {
      auto [sum, first] = d->add(input);
      const auto [rows, cols, ld] = as_matrix(sum);
      if (first) kernels::fill(sum.data<T>(), ld, 0, rows, cols);
      gradient = holders->emplace_back(sum).data<T>();
    }
    bias.add_term(call.bias[i].data<T>(), call.bias_at[i], gradient);
  }
  return bias;
}

// Runs the kernel's backward: dq, dk and dv where they are wanted.
template <class T>
void run_backward(const Call& call, kernels::AttentionGrads<T> grads, Sink& d) {
  std::vector<Tensor> holders;
  std::optional<DenseBias<Precise<T>>> bias = dense_bias<Precise<T>>(call, &d, &holders);
  const auto place = [&](int i, T*& pointer, kernels::HeadStrides& at, bool& add) {
    if (!d.wants(i)) return;
    auto [gradient, first] = d.add(i);
    pointer = holders.emplace_back(gradient).template data<T>();
    at = heads_of(gradient);
    add = !first;
  };
  place(0, grads.dq, grads.dq_at, grads.add_dq);
  place(1, grads.dk, grads.dk_at, grads.add_dk);
  place(2, grads.dv, grads.dv_at, grads.add_dv);
  kernels::AttentionArgs<T> args = call.args<T>(bias ? &*bias : nullptr);
  if (grads.d_weights != nullptr) args.dropout = {};  // they are those before it
  const ProfileScope profile("attention backward", call.flops(3, 2),
                             2 * bytes_of(call.q, call.k, call.v));  // each and its gradient
  kernels::attention_grad(args, grads);
}

template <class T>
void context_backward(const Call& call, const Tensor& out, const Tensor& sums, const Tensor& d_out,
                      Sink& d) {
  kernels::AttentionGrads<T> grads;
  grads.out = out.data<T>();
  grads.d_out = d_out.data<T>();
  grads.sums = static_cast<const kernels::SoftmaxSum<Precise<T>>*>(sums.raw());
  grads.out_at = grads.d_out_at = heads_of(out);
  run_backward(call, grads, d);
}

template <class T>
void weights_backward(const Call& call, const Tensor& weights, const Tensor& d_weights, Sink& d) {
  kernels::AttentionGrads<T> grads;
  grads.weights = weights.data<Precise<T>>();
  grads.d_weights = d_weights.data<Precise<T>>();
  grads.ldw = weights.dim(3);
  grads.weights_of_head = weights.dim(2) * weights.dim(3);
  run_backward(call, grads, d);
}

// The weights of all sentences and heads, (B, H, longest Tq, longest Tk).
template <class T>
Tensor all_weights(const Call& call, const kernels::AttentionArgs<T>& args,
                   const kernels::SoftmaxSum<Precise<T>>* sums) {
  const int64_t B = call.queries.sentences(), Tq = call.queries.longest(), Tk = call.keys.longest();
  Tensor weights = Tensor::zeros({B, call.H, Tq, Tk}, precise(call.q.dtype()));
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t h = 0; h < call.H; ++h) {
      kernels::attention_weights(args, sums, b, h,
                                 weights.data<Precise<T>>() + (b * call.H + h) * Tq * Tk, Tk);
    }
  }
  return weights;
}

AttentionResult run(const Tensor& q, const Rows& queries, const Tensor& k, const Tensor& v,
                    const Rows& keys, const Mask& mask, const AttentionOptions& options,
                    bool with_weights) {
  Call call = check(q, queries, k, v, keys, mask, options);
  std::vector<Tensor> inputs = {q, k, v};
  inputs.insert(inputs.end(), options.bias.terms().begin(), options.bias.terms().end());
  const bool recorded =
      std::any_of(inputs.begin(), inputs.end(), [](const Tensor& x) { return x.recorded(); });
  call.options.split = options.split || recorded;
  RAPT_CHECK(!recorded || (queries.is_packed() && keys.is_packed() &&
                           (k.rank() == 4 || keys.tokens() == k.dim(0))),
             "attention: expected packed sentences where gradients are wanted (rows between "
             "sentences would have none)");
  const Shape shape =
      q.rank() == 3 ? Shape{q.dim(0), call.H, call.Dv} : Shape{q.dim(0), call.H, q.dim(2), call.Dv};
  Tensor out =
      queries.is_packed() ? Tensor::empty(shape, q.dtype()) : Tensor::zeros(shape, q.dtype());
  Tensor weights, sums;  // of a query and head: kernels::SoftmaxSum
  if (recorded || with_weights)
    sums = Tensor::empty({queries.tokens(), call.H, 2}, precise(q.dtype()));
  dispatch_activation(q.dtype(), "attention", [&](auto tag) {
    using T = decltype(tag);
    std::optional<DenseBias<Precise<T>>> bias = dense_bias<Precise<T>>(call);
    const kernels::AttentionArgs<T> args = call.args<T>(bias ? &*bias : nullptr);
    const ProfileScope profile("attention", call.flops(1, 1), bytes_of(q, k, v, out));
    auto* const made_with = static_cast<kernels::SoftmaxSum<Precise<T>>*>(sums.raw());
    kernels::attention(args, out.data<T>(), heads_of(out), made_with);
    if (with_weights) weights = all_weights<T>(call, args, made_with);
  });
  AttentionResult result;
  result.context = record(out, inputs, [call, out, sums](const Tensor& d_out, Sink& d) {
    dispatch_activation(d_out.dtype(), "attention", [&](auto tag) {
      context_backward<decltype(tag)>(call, out, sums, d_out, d);
    });
  });
  if (!with_weights) return result;
  inputs[2] = call.v;  // not recorded: weights do not depend on values
  result.weights = record(weights, inputs, [call, weights](const Tensor& d_weights, Sink& d) {
    dispatch_activation(call.q.dtype(), "attention", [&](auto tag) {
      weights_backward<decltype(tag)>(call, weights, d_weights, d);
    });
  });
  return result;
}

}  // namespace

Tensor attention(const Tensor& q, const Rows& queries, const Tensor& k, const Tensor& v,
                 const Rows& keys, const Mask& mask, const AttentionOptions& options) {
  return run(q, queries, k, v, keys, mask, options, false).context;
}

AttentionResult attention_with_weights(const Tensor& q, const Rows& queries, const Tensor& k,
                                       const Tensor& v, const Rows& keys, const Mask& mask,
                                       const AttentionOptions& options) {
  return run(q, queries, k, v, keys, mask, options, true);
}

Tensor mean_heads(const Tensor& weights) {
  RAPT_CHECK(weights.rank() == 4 && weights.dim(1) > 0 && weights.contiguous(),
             "mean_heads: expected weights (B, H, Tq, Tk) of at least one head, got {}",
             weights.shape().text());
  const int64_t B = weights.dim(0), H = weights.dim(1), size = weights.dim(2) * weights.dim(3);
  Tensor mean = Tensor::empty({B, weights.dim(2), weights.dim(3)}, weights.dtype());
  dispatch_float(weights.dtype(), "mean_heads", [&](auto tag) {
    using T = decltype(tag);
    const T* from = weights.data<T>();
    T* to = mean.data<T>();
    for (int64_t h = 0; h < H; ++h)
      kernels::scale(from + h * size, H * size, 1, to, size, B, size, h > 0);
    kernels::scale(to, size, 1.0 / static_cast<double>(H), to, size, B, size, false);
  });
  return record(mean, {weights}, [B, H, size](const Tensor& dy, Sink& d) {
    Sink::Sum sum = d.add(0);
    dispatch_float(dy.dtype(), "mean_heads", [&](auto tag) {
      using T = decltype(tag);
      for (int64_t h = 0; h < H; ++h) {
        kernels::scale(dy.data<T>(), size, 1.0 / static_cast<double>(H),
                       sum.gradient.data<T>() + h * size, H * size, B, size, !sum.first);
      }
    });
  });
}

}  // namespace rapt
