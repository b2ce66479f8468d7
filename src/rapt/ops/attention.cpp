#include "rapt/ops/attention.h"

#include <cmath>
#include <optional>

#include "rapt/base/profile.h"
#include "rapt/kernels/attention.h"
#include "rapt/kernels/elementwise.h"
#include "rapt/ops/dense_bias.h"
#include "rapt/tensor/dispatch.h"

namespace rapt {
namespace {

// One call of attention: its tensors and what the kernels are told about them.
struct Call {
  Tensor q, k, v, bias;
  Rows queries, keys;
  Mask mask;
  Mask::View view;
  AttentionOptions options;
  int64_t H, Dk, Dv;

  template <class T>
  DenseBias<T> dense_bias() const {
    const int64_t Tq = bias.dim(-2), Tk = bias.dim(-1);
    const int64_t stride_h = bias.rank() == 4 ? Tq * Tk : 0;
    const int64_t stride_b = bias.rank() == 4 ? H * Tq * Tk : bias.rank() == 3 ? Tq * Tk : 0;
    return {bias.data<T>(), stride_b, stride_h, Tk, H};
  }

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
    a.scale = options.scale == 0 ? 1 / std::sqrt(static_cast<double>(std::max<int64_t>(Dk, 1)))
                                 : options.scale;
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
  RAPT_CHECK(std::isfinite(options.scale), "attention: expected a finite scale, got {}",
             options.scale);
  const Tensor& bias = options.bias;
  if (bias.defined()) {
    const int64_t B = queries.sentences(), Tq = queries.longest(), Tk = keys.longest();
    RAPT_CHECK(queries.equal_lengths() && keys.equal_lengths(),
               "attention: expected sentences of equal lengths for a dense bias");
    const Shape wanted = bias.rank() == 2   ? Shape{Tq, Tk}
                         : bias.rank() == 3 ? Shape{B, Tq, Tk}
                                            : Shape{B, H, Tq, Tk};
    RAPT_CHECK((B == 0 ? bias.rank() >= 2 : bias.shape() == wanted) && bias.contiguous() &&
                   bias.dtype() == q.dtype(),
               "attention: expected a bias {} of {}, got {} of {}", wanted.text(),
               dtype_name(q.dtype()), bias.shape().text(), dtype_name(bias.dtype()));
  }
  Call call{q.detach(), k.detach(), v.detach(), bias.defined() ? bias.detach() : Tensor(),
            queries,    keys,       mask,       {},
            options,    H,          Dk,         Dv};
  call.options.bias = Tensor();
  call.view = mask.view("attention", queries, keys, H);
  return call;
}

template <class T>
void run_backward(const Call& call, const Tensor& out, const Tensor& log_sum, const Tensor& d_out,
                  Sink& d) {
  std::optional<DenseBias<T>> bias;
  Tensor d_bias;
  if (call.bias.defined()) {
    bias.emplace(call.dense_bias<T>());
    if (d.wants(3)) {
      auto [gradient, first] = d.add(3);
      d_bias = gradient;
      const auto [rows, cols, ld] = as_matrix(d_bias);
      if (first) kernels::fill(d_bias.data<T>(), ld, 0, rows, cols);
      bias->collect(d_bias.data<T>());
    }
  }
  kernels::AttentionGrads<T> grads;
  grads.out = out.data<T>();
  grads.d_out = d_out.data<T>();
  grads.log_sum = log_sum.data<T>();
  grads.ldo = grads.ld_d_out = call.H * call.Dv;
  Tensor holders[3];
  const auto place = [&](int i, T*& pointer, int64_t& ld, bool& add) {
    if (!d.wants(i)) return;
    auto [gradient, first] = d.add(i);
    holders[i] = gradient;
    pointer = holders[i].template data<T>();
    ld = holders[i].row_stride();
    add = !first;
  };
  place(0, grads.dq, grads.lddq, grads.add_dq);
  place(1, grads.dk, grads.lddk, grads.add_dk);
  place(2, grads.dv, grads.lddv, grads.add_dv);
  const ProfileScope profile("attention backward");
  kernels::attention_grad(call.args<T>(bias ? &*bias : nullptr), grads);
}

AttentionResult run(const Tensor& q, const Rows& queries, const Tensor& k, const Tensor& v,
                    const Rows& keys, const Mask& mask, const AttentionOptions& options,
                    bool with_weights) {
  const Call call = check(q, queries, k, v, keys, mask, options);
  const bool recorded = q.recorded() || k.recorded() || v.recorded() || options.bias.recorded();
  RAPT_CHECK(!recorded || (queries.is_packed() && keys.is_packed() && keys.tokens() == k.dim(0)),
             "attention: expected packed sentences where gradients are wanted (rows between "
             "sentences would have none)");
  const Shape shape{q.dim(0), call.H, call.Dv};
  Tensor out =
      queries.is_packed() ? Tensor::empty(shape, q.dtype()) : Tensor::zeros(shape, q.dtype());
  Tensor log_sum =
      recorded || with_weights ? Tensor::empty({q.dim(0), call.H}, q.dtype()) : Tensor();
  AttentionResult result;
  dispatch_float(q.dtype(), "attention", [&](auto tag) {
    using T = decltype(tag);
    std::optional<DenseBias<T>> bias;
    if (call.bias.defined()) bias.emplace(call.dense_bias<T>());
    const kernels::AttentionArgs<T> args = call.args<T>(bias ? &*bias : nullptr);
    const ProfileScope profile("attention");
    kernels::attention(args, out.data<T>(), call.H * call.Dv,
                       log_sum.defined() ? log_sum.data<T>() : nullptr);
    if (with_weights) {
      const int64_t B = queries.sentences(), Tq = queries.longest(), Tk = keys.longest();
      result.weights = Tensor::zeros({B, call.H, Tq, Tk}, q.dtype());
      for (int64_t b = 0; b < B; ++b) {
        for (int64_t h = 0; h < call.H; ++h) {
          kernels::attention_weights(args, log_sum.data<T>(), b, h,
                                     result.weights.data<T>() + (b * call.H + h) * Tq * Tk, Tk);
        }
      }
    }
  });
  result.context =
      record(out, {q, k, v, options.bias}, [call, out, log_sum](const Tensor& d_out, Sink& d) {
        dispatch_float(d_out.dtype(), "attention", [&](auto tag) {
          run_backward<decltype(tag)>(call, out, log_sum, d_out, d);
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

}  // namespace rapt
