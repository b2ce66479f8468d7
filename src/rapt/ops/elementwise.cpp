#include "rapt/ops/elementwise.h"

#include "rapt/base/profile.h"
#include "rapt/kernels/elementwise.h"
#include "rapt/tensor/bytes.h"
#include "rapt/tensor/dispatch.h"

namespace rapt {
namespace {

void check_same(const char* who, const Tensor& a, const Tensor& b) {
  RAPT_CHECK(a.shape() == b.shape(), "{}: expected one shape, got {} and {}", who, a.shape().text(),
             b.shape().text());
  RAPT_CHECK(a.dtype() == b.dtype(), "{}: expected one type, got {} and {}", who,
             dtype_name(a.dtype()), dtype_name(b.dtype()));
}

// Memory for a result: x's own, if nobody else holds it.
Tensor memory_of(const Tensor& x) {
  return x.owners() == 1 && x.contiguous() ? x.detach() : empty_like(x);
}

void check_rows(const char* who, const Tensor& x, const Rows& rows) {
  RAPT_CHECK(x.rank() > 0 && x.dim(0) == rows.tokens(), "{}: expected {} rows, got shape {}", who,
             rows.tokens(), x.shape().text());
}

Tensor activation(const char* who, kernels::Activation kind, const Tensor& x, Tensor y) {
  dispatch_activation(x.dtype(), who, [&](auto tag) {
    using T = decltype(tag);
    const auto [rows, cols, ld] = as_matrix(x);
    const ProfileScope profile("activation", 0, bytes_of(x, y));
    kernels::activation(kind, x.data<T>(), ld, y.data<T>(), cols, rows, cols);
  });
  const Tensor saved =
      kind == kernels::Activation::relu ? y : x.detach();  // relu's slope shows in its result
  return record(y, {x}, [kind, saved](const Tensor& dy, Sink& d) {
    dispatch_activation(dy.dtype(), "activation", [&](auto tag) {
      using T = decltype(tag);
      const auto [rows, cols, ld] = as_matrix(saved);
      Tensor dx = dy;
      const ProfileScope profile("activation backward", 0, bytes_of(saved, dy, dx));
      kernels::activation_grad(kind, saved.data<T>(), ld, dy.data<T>(), cols, dx.data<T>(), cols,
                               rows, cols);
    });
    d.give(0, dy);
  });
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) {
  check_same("add", a, b);
  Tensor y = empty_like(a);
  dispatch_activation(a.dtype(), "add", [&](auto tag) {
    using T = decltype(tag);
    const auto [rows, cols, ld] = as_matrix(a);
    const ProfileScope profile("add", 0, bytes_of(a, b, y));
    kernels::add(a.data<T>(), ld, b.data<T>(), as_matrix(b).ld, y.data<T>(), cols, rows, cols);
  });
  return record(y, {a, b}, [](const Tensor& dy, Sink& d) {
    if (d.wants(1)) {
      if (d.wants(0)) {
        dispatch_activation(dy.dtype(), "add", [&](auto tag) {
          using T = decltype(tag);
          const auto [rows, cols, ld] = as_matrix(dy);
          auto [db, first] = d.add(1);
          const ProfileScope profile("add backward", 0, bytes_of(dy, db));
          kernels::scale(dy.data<T>(), ld, 1, db.template data<T>(), as_matrix(db).ld, rows, cols,
                         !first);
        });
      } else {
        d.give(1, dy);
      }
    }
    if (d.wants(0)) d.give(0, dy);
  });
}

Tensor multiply(const Tensor& a, const Tensor& b) {
  check_same("multiply", a, b);
  Tensor y = empty_like(a);
  const auto product = [](const Tensor& p, const Tensor& q, Tensor out) {
    dispatch_activation(p.dtype(), "multiply", [&](auto tag) {
      using T = decltype(tag);
      const auto [rows, cols, ld] = as_matrix(p);
      const ProfileScope profile("multiply", 0, bytes_of(p, q, out));
      kernels::multiply(p.data<T>(), ld, q.data<T>(), as_matrix(q).ld, out.data<T>(),
                        as_matrix(out).ld, rows, cols);
    });
  };
  product(a, b, y);
  return record(y, {a, b}, [a, b, product](const Tensor& dy, Sink& d) {
    if (d.wants(0)) product(dy, b, d.write(0));
    if (d.wants(1)) product(dy, a, d.write(1));
  });
}

Tensor scale(const Tensor& x, double factor) {
  Tensor y = empty_like(x);
  const auto scaled = [factor](const Tensor& from, Tensor to, bool accumulate) {
    dispatch_activation(from.dtype(), "scale", [&](auto tag) {
      using T = decltype(tag);
      const auto [rows, cols, ld] = as_matrix(from);
      const ProfileScope profile("scale", 0, bytes_of(from, to));
      kernels::scale(from.data<T>(), ld, factor, to.data<T>(), as_matrix(to).ld, rows, cols,
                     accumulate);
    });
  };
  scaled(x, y, false);
  return record(y, {x}, [scaled](const Tensor& dy, Sink& d) {
    auto [dx, first] = d.add(0);
    scaled(dy, dx, !first);
  });
}

Tensor relu(Tensor x) {
  const Tensor y = memory_of(x);
  return activation("relu", kernels::Activation::relu, x, y);
}
Tensor gelu(const Tensor& x) {
  return activation("gelu", kernels::Activation::gelu, x, empty_like(x));
}
Tensor gelu_tanh(const Tensor& x) {
  return activation("gelu_tanh", kernels::Activation::gelu_tanh, x, empty_like(x));
}

Tensor dropout(Tensor x, const Rows& rows, const kernels::Dropout& site) {
  if (site.probability == 0) return x;
  check_rows("dropout", x, rows);
  Tensor y = memory_of(x);
  const auto drop = [rows, site](const Tensor& from, Tensor to) {
    dispatch_activation(from.dtype(), "dropout", [&](auto tag) {
      using T = decltype(tag);
      const auto [n, cols, ld] = as_matrix(from);
      const ProfileScope profile("dropout", 0, bytes_of(from, to));
      kernels::dropout(site, rows.ids(), from.data<T>(), ld, to.data<T>(), as_matrix(to).ld, n,
                       cols);
    });
  };
  drop(x, y);
  return record(y, {x}, [drop](const Tensor& dy, Sink& d) {
    drop(dy, dy);
    d.give(0, dy);
  });
}

Tensor dropout_add(Tensor x, const Tensor& residual, const Rows& rows,
                   const kernels::Dropout& site) {
  check_same("dropout_add", x, residual);
  if (site.probability > 0) check_rows("dropout_add", x, rows);
  Tensor y = memory_of(x);
  const auto drop = [rows, site](const Tensor& from, Tensor to) {
    dispatch_activation(from.dtype(), "dropout_add", [&](auto tag) {
      using T = decltype(tag);
      const auto [n, cols, ld] = as_matrix(from);
      const kernels::RowId* ids = site.probability > 0 ? rows.ids() : nullptr;
      kernels::dropout(site, ids, from.data<T>(), ld, to.data<T>(), as_matrix(to).ld, n, cols);
    });
  };
  if (site.probability > 0) drop(x, y);
  const Tensor& kept = site.probability > 0 ? y : x;
  dispatch_activation(x.dtype(), "dropout_add", [&](auto tag) {
    using T = decltype(tag);
    const auto [n, cols, ld] = as_matrix(kept);
    kernels::add(kept.data<T>(), ld, residual.data<T>(), as_matrix(residual).ld, y.data<T>(), cols,
                 n, cols);
  });
  return record(y, {x, residual}, [drop](const Tensor& dy, Sink& d) {
    if (d.wants(0)) drop(dy, d.write(0));
    if (d.wants(1)) d.give(1, dy);
  });
}

}  // namespace rapt
