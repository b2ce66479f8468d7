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
#include "rapt/tensor/dispatch.h"

namespace rapt {
namespace {

// One call of attention: its tensors and what the kernels are told about them.
struct Call {
  Tensor q, k, v;
  std::vector<Tensor> bias;  // the terms, and where their elements lie
  std::vector<ScoreStrides> bias_at;
  Rows queries, keys;
  Mask mask;
  Mask::View view;
  AttentionOptions options;
  int64_t H, Dk, Dv;

  template <class T>
  kernels::AttentionArgs<T> args(kernels::ScoreBias<T>* score_bias) const {
    kernels::AttentionArgs<T> a;
    a.q = q.data<T>();
    a.k = k.data<T>();
    a.v = v.data<T>();
    a.ldq = q.row_stride();
    a.ldk = k.row_stride();
    a.ldv = v.row_stride();
    a.queries = queries.segments();
    a.keys = keys.segments();
    a.H = H;
    a.Dk = Dk;
    a.Dv = Dv;
    a.scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(Dk)));
    a.mask = view.mask(mask);
    a.bias = score_bias;
    a.dropout = options.dropout;
    a.key_tile = options.key_tile;
    a.query_tile = options.query_tile;
    return a;
  }
};

Call check(const Tensor& q, const Rows& queries, const Tensor& k, const Tensor& v, const Rows& keys,
           const Mask& mask, const AttentionOptions& options) {
  RAPT_CHECK(q.rank() == 3 && k.rank() == 3 && v.rank() == 3,
             "attention: expected q (Nq, H, Dk), k (Nk, H, Dk), v (Nk, H, Dv), got {}, {}, {}",
             q.shape().text(), k.shape().text(), v.shape().text());
  const int64_t H = q.dim(1), Dk = q.dim(2), Dv = v.dim(2);
  RAPT_CHECK(H >= 1 && Dk >= 1 && Dv >= 1,
             "attention: expected at least one head and channel, got H {} Dk {} Dv {}", H, Dk, Dv);
  RAPT_CHECK(k.dim(1) == H && v.dim(1) == H,
             "attention: expected {} heads, got keys with {} and values with {}", H, k.dim(1),
             v.dim(1));
  RAPT_CHECK(k.dim(2) == Dk, "attention: expected keys of width {} a head, got {}", Dk, k.dim(2));
  RAPT_CHECK(k.dim(0) == v.dim(0), "attention: expected as many values as keys, got {} and {}",
             v.dim(0), k.dim(0));
  RAPT_CHECK(q.dtype() == k.dtype() && q.dtype() == v.dtype(),
             "attention: expected one type, got {}, {}, {}", dtype_name(q.dtype()),
             dtype_name(k.dtype()), dtype_name(v.dtype()));
  RAPT_CHECK(queries.sentences() == keys.sentences(),
             "attention: expected as many sentences of keys as of queries, got {} and {}",
             keys.sentences(), queries.sentences());
  RAPT_CHECK(queries.tokens() == q.dim(0), "attention: expected {} rows of queries, got {}",
             queries.tokens(), q.dim(0));
  RAPT_CHECK(keys.tokens() <= k.dim(0), "attention: expected {} rows of keys, got {}",
             keys.tokens(), k.dim(0));
  const double scale = options.scale.value_or(1);
  RAPT_CHECK(std::isfinite(scale), "attention: expected a finite scale, got {}", scale);
  Call call{q.detach(), k.detach(), v.detach(), {}, {}, queries, keys,
            mask,       {},         options,    H,  Dk, Dv};
  for (const Tensor& term : options.bias.terms()) {
    RAPT_CHECK(term.dtype() == q.dtype(), "attention: expected a bias of {}, got {}",
               dtype_name(q.dtype()), dtype_name(term.dtype()));
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
  std::optional<DenseBias<T>> bias = dense_bias<T>(call, &d, &holders);
  const auto place = [&](int i, T*& pointer, int64_t& ld, bool& add) {
    if (!d.wants(i)) return;
    auto [gradient, first] = d.add(i);
    pointer = holders.emplace_back(gradient).template data<T>();
    ld = gradient.row_stride();
    add = !first;
  };
  place(0, grads.dq, grads.lddq, grads.add_dq);
  place(1, grads.dk, grads.lddk, grads.add_dk);
  place(2, grads.dv, grads.lddv, grads.add_dv);
  kernels::AttentionArgs<T> args = call.args<T>(bias ? &*bias : nullptr);
  if (grads.d_weights != nullptr) args.dropout = {};  // they are those before it
  const ProfileScope profile("attention backward");
  kernels::attention_grad(args, grads);
}

template <class T>
void context_backward(const Call& call, const Tensor& out, const Tensor& log_sum,
                      const Tensor& d_out, Sink& d) {
  kernels::AttentionGrads<T> grads;
  grads.out = out.data<T>();
  grads.d_out = d_out.data<T>();
  grads.log_sum = log_sum.data<T>();
  grads.ldo = grads.ld_d_out = call.H * call.Dv;
  run_backward(call, grads, d);
}

template <class T>
void weights_backward(const Call& call, const Tensor& weights, const Tensor& d_weights, Sink& d) {
  kernels::AttentionGrads<T> grads;
  grads.weights = weights.data<T>();
  grads.d_weights = d_weights.data<T>();
  grads.ldw = weights.dim(3);
  grads.weights_of_head = weights.dim(2) * weights.dim(3);
  run_backward(call, grads, d);
}

// The weights of all sentences and heads, (B, H, longest Tq, longest Tk).
template <class T>
Tensor all_weights(const Call& call, const kernels::AttentionArgs<T>& args, const T* log_sum) {
  const int64_t B = call.queries.sentences(), Tq = call.queries.longest(), Tk = call.keys.longest();
  Tensor weights = Tensor::zeros({B, call.H, Tq, Tk}, call.q.dtype());
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t h = 0; h < call.H; ++h) {
      kernels::attention_weights(args, log_sum, b, h,
                                 weights.data<T>() + (b * call.H + h) * Tq * Tk, Tk);
    }
  }
  return weights;
}

AttentionResult run(const Tensor& q, const Rows& queries, const Tensor& k, const Tensor& v,
                    const Rows& keys, const Mask& mask, const AttentionOptions& options,
                    bool with_weights) {
  const Call call = check(q, queries, k, v, keys, mask, options);
  std::vector<Tensor> inputs = {q, k, v};
  inputs.insert(inputs.end(), options.bias.terms().begin(), options.bias.terms().end());
  const bool recorded =
      std::any_of(inputs.begin(), inputs.end(), [](const Tensor& x) { return x.recorded(); });
  RAPT_CHECK(!recorded || (queries.is_packed() && keys.is_packed() && keys.tokens() == k.dim(0)),
             "attention: expected packed sentences where gradients are wanted (rows between "
             "sentences would have none)");
  const Shape shape{q.dim(0), call.H, call.Dv};
  Tensor out =
      queries.is_packed() ? Tensor::empty(shape, q.dtype()) : Tensor::zeros(shape, q.dtype());
  Tensor weights,
      log_sum = recorded || with_weights ? Tensor::empty({q.dim(0), call.H}, q.dtype()) : Tensor();
  dispatch_float(q.dtype(), "attention", [&](auto tag) {
    using T = decltype(tag);
    std::optional<DenseBias<T>> bias = dense_bias<T>(call);
    const kernels::AttentionArgs<T> args = call.args<T>(bias ? &*bias : nullptr);
    const ProfileScope profile("attention");
    T* const sums = log_sum.defined() ? log_sum.data<T>() : nullptr;
    kernels::attention(args, out.data<T>(), call.H * call.Dv, sums);
    if (with_weights) weights = all_weights(call, args, sums);
  });
  AttentionResult result;
  result.context = record(out, inputs, [call, out, log_sum](const Tensor& d_out, Sink& d) {
    dispatch_float(d_out.dtype(), "attention", [&](auto tag) {
      context_backward<decltype(tag)>(call, out, log_sum, d_out, d);
    });
  });
  if (!with_weights) return result;
  inputs[2] = call.v;  // not recorded: weights do not depend on values
  result.weights = record(weights, inputs, [call, weights](const Tensor& d_weights, Sink& d) {
    dispatch_float(d_weights.dtype(), "attention",
                   [&](auto tag) { weights_backward<decltype(tag)>(call, weights, d_weights, d); });
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
    auto [dx, first] = d.add(0);
    dispatch_float(dy.dtype(), "mean_heads", [&](auto tag) {
      using T = decltype(tag);
      for (int64_t h = 0; h < H; ++h) {
        kernels::scale(dy.data<T>(), size, 1.0 / static_cast<double>(H),
                       dx.template data<T>() + h * size, H * size, B, size, !first);
      }
    });
  });
}

}  // namespace rapt
