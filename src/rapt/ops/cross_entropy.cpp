#include "rapt/ops/cross_entropy.h"

#include "rapt/base/profile.h"
#include "rapt/kernels/elementwise.h"
#include "rapt/kernels/softmax.h"
#include "rapt/ops/checks.h"
#include "rapt/tensor/bytes.h"
#include "rapt/tensor/dispatch.h"

namespace rapt {

Loss cross_entropy(Tensor logits, const Tensor& targets, const CrossEntropyOptions& options) {
  RAPT_CHECK(logits.rank() == 2, "cross_entropy: expected logits (N, V), got {}",
             logits.shape().text());
  const int64_t N = logits.dim(0), V = logits.dim(1);
  Loss loss;
  loss.count = count_targets("cross_entropy", targets, N, V, options);
  const int32_t* target = targets.data<int32_t>();
  Tensor d_logits;
  if (logits.recorded()) {
    d_logits = logits.owners() == 1 && logits.contiguous() ? logits.detach() : empty_like(logits);
  }
  Tensor sum = Tensor::empty({1}, precise(logits.dtype()));
  dispatch_activation(logits.dtype(), "cross_entropy", [&](auto tag) {
    using T = decltype(tag);
    using Loss = Precise<T>;
    Tensor losses = Tensor::empty({N}, sum.dtype());
    const ProfileScope profile("cross_entropy", 0, bytes_of(logits, d_logits));
    kernels::cross_entropy(std::as_const(logits).data<T>(), logits.row_stride(), target,
                           options.ignore_index, options.label_smoothing, losses.data<Loss>(),
                           d_logits.defined() ? d_logits.data<T>() : nullptr, V, N, V);
    *sum.data<Loss>() = static_cast<Loss>(kernels::sum(losses.data<Loss>(), N));
  });
  // The closure gives its only handle away: it runs once.
  loss.sum = record(sum, {logits}, [d_logits](const Tensor& dy, Sink& d) mutable {
    Tensor gradient = std::move(d_logits);
    const double factor = dy.item();
    if (factor != 1) {
      dispatch_activation(gradient.dtype(), "cross_entropy", [&](auto tag) {
        using T = decltype(tag);
        const auto [rows, cols, ld] = as_matrix(gradient);
        kernels::scale(gradient.data<T>(), ld, factor, gradient.data<T>(), ld, rows, cols, false);
      });
    }
    d.give(0, std::move(gradient));
  });
  return loss;
}

}  // namespace rapt
