#include "rapt/ops/projection_loss.h"

#include <algorithm>
#include <utility>

#include "rapt/base/profile.h"
#include "rapt/kernels/elementwise.h"
#include "rapt/kernels/matmul.h"
#include "rapt/kernels/softmax.h"
#include "rapt/ops/checks.h"
#include "rapt/ops/linear_products.h"
#include "rapt/ops/select.h"
#include "rapt/tensor/bytes.h"
#include "rapt/tensor/dispatch.h"

namespace rapt {
namespace {

// The rows that have a target.
std::vector<int32_t> counted_rows(const Tensor& targets, int64_t count, int32_t ignore_index) {
  std::vector<int32_t> rows;
  rows.reserve(static_cast<size_t>(count));
  const int32_t* target = targets.data<int32_t>();
  for (int64_t i = 0; i < targets.dim(0); ++i) {
    if (target[i] != ignore_index) rows.push_back(static_cast<int32_t>(i));
  }
  return rows;
}

// What the loss is made of, and the gradients of its sum that are wanted.
struct Parts {
  Tensor x, w, b;
  Tensor dx, dw, db;  // undefined where not wanted

  // Losses of rows [begin, end), and their part of the gradients; `logits` has ld elements a row.
  template <class T>
  void add_chunk(const int32_t* targets, double smoothing, int64_t begin, int64_t end,
                 Precise<T>* losses, T* logits, int64_t ld) {
    const int64_t M = end - begin, C = x.dim(1), V = w.dim(0);
    const double flops = product_flops(M, V, C);
    const double weight_bytes = bytes_of(w),
                 bytes = static_cast<double>(M * size_of(x.dtype()));  // of a column
    const T* rows = std::as_const(x).data<T>() + begin * x.row_stride();
    const T* weight = std::as_const(w).data<T>();
    const bool recorded = dx.defined() || dw.defined() || db.defined();
    {
      const ProfileScope profile("projection", flops,
                                 weight_bytes + bytes * static_cast<double>(V + C));
      kernels::linear(rows, x.row_stride(), weight, w.row_stride(),
                      b.defined() ? std::as_const(b).data<Precise<T>>() : nullptr, logits, ld, M, V,
                      C, recorded ? kernels::RowPolicy::fast : kernels::RowPolicy::independent);
    }
    {
      const ProfileScope profile("cross_entropy", 0,
                                 bytes * static_cast<double>(recorded ? 2 * V : V));
      kernels::cross_entropy(logits, ld, targets + begin, -1, smoothing, losses + begin,
                             recorded ? logits : nullptr, ld, M, V);
    }
    if (dx.defined()) {
      const ProfileScope profile("projection dx", flops,
                                 weight_bytes + bytes * static_cast<double>(V + C));
      kernels::linear_dx(logits, ld, weight, w.row_stride(), dx.data<T>() + begin * C, C, M, V, C,
                         false);
    }
    if (dw.defined()) {
      const ProfileScope profile("projection dw", flops,
                                 bytes_of(dw) + bytes * static_cast<double>(V + C));
      kernels::linear_dw(logits, ld, rows, x.row_stride(), dw.data<Precise<T>>(), C, M, V, C,
                         begin > 0);
    }
    if (db.defined()) kernels::linear_db(logits, ld, db.data<Precise<T>>(), M, V, begin > 0);
  }
};

// Hands a gradient of the loss's sum on, times the gradient of that sum.
void give(Sink& d, int input, Tensor gradient, double factor) {
  if (!d.wants(input)) return;
  if (factor != 1) {
    dispatch_activation(gradient.dtype(), "projection_loss", [&](auto tag) {
      using T = decltype(tag);
      const auto [rows, cols, ld] = as_matrix(gradient);
      kernels::scale(gradient.data<T>(), ld, factor, gradient.data<T>(), ld, rows, cols, false);
    });
  }
  d.give(input, std::move(gradient));
}

}  // namespace

Loss projection_loss(const Tensor& all_x, const Tensor& w, const Tensor& b, const Tensor& targets,
                     const CrossEntropyOptions& options, int64_t chunk) {
  check_linear("projection_loss", all_x, w, b);
  const int64_t V = w.dim(0), C = w.dim(1);
  const int64_t N = count_targets("projection_loss", targets, all_x.dim(0), V, options);
  Tensor x = all_x, counted = targets;
  if (N < all_x.dim(0)) {
    const std::vector<int32_t> rows = counted_rows(targets, N, options.ignore_index);
    x = select_rows(all_x, rows);
    counted = select_rows(targets, rows);
  }
  Parts parts{x.detach(), w.detach(), b.defined() ? b.detach() : Tensor(), {}, {}, {}};
  if (x.recorded()) parts.dx = Tensor::empty({N, C}, x.dtype());
  if (w.recorded()) parts.dw = Tensor::empty({V, C}, precise(x.dtype()));
  if (b.recorded()) parts.db = Tensor::empty({V}, precise(x.dtype()));
  Tensor sum = Tensor::empty({1}, precise(x.dtype()));
  dispatch_activation(x.dtype(), "projection_loss", [&](auto tag) {
    using T = decltype(tag);
    constexpr int64_t kLogitBytes = int64_t{96} << 20;
    const int64_t most =
        chunk > 0
            ? chunk
            : std::max<int64_t>(
                  kLogitBytes / (static_cast<int64_t>(sizeof(T)) * std::max<int64_t>(V, 1)), 64);
    const int64_t chunks = std::max<int64_t>((N + most - 1) / most, 1);
    Tensor losses = Tensor::empty({N}, sum.dtype());
    constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));  // where rows begin
    const int64_t ld = (V + kLine - 1) / kLine * kLine;
    Tensor logits = Tensor::empty({(N + chunks - 1) / chunks, ld}, x.dtype());
    for (int64_t i = 0; i < chunks; ++i)
      parts.add_chunk(std::as_const(counted).data<int32_t>(), options.label_smoothing,
                      N * i / chunks, N * (i + 1) / chunks, losses.data<Precise<T>>(),
                      logits.data<T>(), ld);
    using Sum = Precise<T>;
    *sum.data<Sum>() = static_cast<Sum>(kernels::sum(losses.data<Sum>(), N));
  });
  // The closure gives its only handles away: it runs once.
  return {record(sum, {x, w, b},
                 [dx = parts.dx, dw = parts.dw, db = parts.db](const Tensor& dy, Sink& d) mutable {
                   const double factor = dy.item();
                   give(d, 0, std::move(dx), factor);
                   give(d, 1, std::move(dw), factor);
                   give(d, 2, std::move(db), factor);
                 }),
          N};
}

}  // namespace rapt
