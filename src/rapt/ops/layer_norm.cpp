#include "rapt/ops/layer_norm.h"

#include "rapt/base/profile.h"
#include "rapt/kernels/layer_norm.h"
#include "rapt/tensor/bytes.h"
#include "rapt/tensor/dispatch.h"

namespace rapt {
namespace {

// `residual` may be undefined: then z is x itself and is not stored again.
Tensor normalise(const char* who, const Tensor& x, const Tensor& residual, const Rows& rows,
                 const kernels::Dropout& site, const Tensor& gain, const Tensor& shift,
                 double epsilon) {
  RAPT_CHECK(x.rank() == 2, "{}: expected (N, C), got {}", who, x.shape().text());
  const int64_t N = x.dim(0), C = x.dim(1);
  RAPT_CHECK(gain.rank() == 1 && gain.dim(0) == C, "{}: expected a gain of {}, got {}", who, C,
             gain.shape().text());
  RAPT_CHECK(!shift.defined() || (shift.rank() == 1 && shift.dim(0) == C),
             "{}: expected a shift of {}, got {}", who, C, shift.shape().text());
  RAPT_CHECK(gain.dtype() == precise(x.dtype()), "{}: expected a gain of {} for {}, got {}", who,
             dtype_name(precise(x.dtype())), dtype_name(x.dtype()), dtype_name(gain.dtype()));
  RAPT_CHECK(!residual.defined() || residual.shape() == x.shape(),
             "{}: expected a residual {}, got {}", who, x.shape().text(), residual.shape().text());
  RAPT_CHECK(site.probability == 0 || rows.tokens() == N, "{}: expected {} rows, got {}", who,
             rows.tokens(), N);
  const bool recorded = x.recorded() || residual.recorded() || gain.recorded() || shift.recorded();
  const bool keep_z = recorded && residual.defined();
  Tensor y = empty_like(x), z = keep_z ? empty_like(x) : x.detach();
  Tensor mean = recorded ? Tensor::empty({N}, gain.dtype()) : Tensor();
  Tensor rstd = recorded ? Tensor::empty({N}, gain.dtype()) : Tensor();
  dispatch_activation(x.dtype(), who, [&](auto tag) {
    using T = decltype(tag);
    kernels::LayerNormArgs<T> args;
    args.x = x.data<T>();
    args.ldx = x.row_stride();
    if (residual.defined()) {
      args.residual = residual.data<T>();
      args.ldr = residual.row_stride();
    }
    args.gain = gain.data<Precise<T>>();
    args.shift = shift.defined() ? shift.data<Precise<T>>() : nullptr;
    args.epsilon = epsilon;
    args.dropout = site;
    args.ids = site.probability > 0 ? rows.ids() : nullptr;
    args.y = y.data<T>();
    args.ldy = C;
    if (keep_z) {
      args.z = z.data<T>();
      args.ldz = C;
    }
    if (recorded) {
      args.mean = mean.data<Precise<T>>();
      args.rstd = rstd.data<Precise<T>>();
    }
    const ProfileScope profile("layer_norm", 0, bytes_of(x, residual, y));
    kernels::layer_norm(args, N, C);
  });
  return record(y, {x, residual, gain, shift},
                [z, mean, rstd, gain, rows, site, N, C](const Tensor& dy, Sink& d) {
                  dispatch_activation(dy.dtype(), "layer_norm", [&](auto tag) {
                    using T = decltype(tag);
                    kernels::LayerNormGrads<T> args;
                    args.z = z.data<T>();
                    args.ldz = z.row_stride();
                    args.mean = mean.data<Precise<T>>();
                    args.rstd = rstd.data<Precise<T>>();
                    args.gain = gain.data<Precise<T>>();
                    args.dy = dy.data<T>();
                    args.lddy = C;
                    args.dropout = site;
                    args.ids = site.probability > 0 ? rows.ids() : nullptr;
                    Tensor holders[4];
                    const auto place = [&](int i, auto*& pointer, bool& add) {
                      if (!d.wants(i)) return C;
                      auto [gradient, first] = d.add(i);
                      holders[i] = gradient;
                      pointer = holders[i].template data<std::remove_cvref_t<decltype(*pointer)>>();
                      add = !first;
                      return holders[i].row_stride();
                    };
                    args.lddx = place(0, args.dx, args.add_dx);
                    args.lddr = place(1, args.d_residual, args.add_d_residual);
                    place(2, args.d_gain, args.add_d_gain);
                    place(3, args.d_shift, args.add_d_shift);
                    const ProfileScope profile("layer_norm backward", 0,
                                               bytes_of(z, dy, holders[0], holders[1]));
                    kernels::layer_norm_grad(args, N, C);
                  });
                });
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& shift, double epsilon) {
  return normalise("layer_norm", x, {}, Rows(), {}, gain, shift, epsilon);
}

Tensor residual_layer_norm(const Tensor& x, const Tensor& residual, const Rows& rows,
                           const kernels::Dropout& site, const Tensor& gain, const Tensor& shift,
                           double epsilon) {
  RAPT_CHECK(residual.defined(), "residual_layer_norm: expected a residual, got none");
  return normalise("residual_layer_norm", x, residual, rows, site, gain, shift, epsilon);
}

}  // namespace rapt
