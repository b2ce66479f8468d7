#include "rapt/nn/sublayer.h"

#include "rapt/ops/elementwise.h"

namespace rapt::nn {

Tensor sublayer(const Tensor& x, const Rows& rows, const LayerNorm& norm,
                const LayerOptions& options, const char* name,
                const std::function<Tensor(const Tensor& x, const Pass& pass)>& f,
                const Pass& pass) {
  const Pass inner = pass.scope(name), output = inner.scope("output");
  if (options.norm_first)
    return dropout_add(f(norm.forward(x, inner), inner), x, rows, output.dropout(options.dropout));
  return norm.forward_residual(f(x, inner), x, rows, options.dropout, output);
}

}  // namespace rapt::nn
