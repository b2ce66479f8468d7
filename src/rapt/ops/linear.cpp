#include "rapt/ops/linear.h"

#include "rapt/base/check.h"
#include "rapt/ops/checks.h"
#include "rapt/ops/linear_products.h"

namespace rapt {

Tensor linear(const Tensor& x, const Tensor& w, const Tensor& b) {
  check_linear("linear", x, w, b);
  const bool recorded = x.recorded() || w.recorded() || b.recorded();
  const Tensor y = linear_product(x, w, b, recorded);
  return record(y, {x, w, b}, [x, w](const Tensor& dy, Sink& d) {
    if (d.wants(0)) {
      auto [dx, first] = d.add(0);
      linear_input_gradient(dy, w, dx, !first);
    }
    linear_parameter_gradients(dy, x, 1, d);
  });
}

Tensor precise_linear(const Tensor& x, const Tensor& w, const Tensor& b) {
  check_linear("linear", x, w, b);
  RAPT_CHECK(!x.recorded() && !w.recorded() && !b.recorded(),
             "linear: expected a run without gradients for sums of f32");
  return precise_linear_product(x, w, b);
}

}  // namespace rapt
