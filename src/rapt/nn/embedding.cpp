#include "rapt/nn/embedding.h"

#include "rapt/ops/embedding.h"

namespace rapt::nn {

Embedding::Embedding(int64_t V, int64_t C, const Init& init) : table_(init.normal({V, C}, 1)) {}

Tensor Embedding::forward(const Tensor& ids, const Rows& rows, const Tensor& positions,
                          double factor, double dropout, const Pass& pass) const {
  return embedding(ids, pass.use(table_), factor, positions, rows, pass.dropout(dropout),
                   pass.compute_type(table_.value().dtype()));
}

void Embedding::visit(const Visitor& visitor, const std::string& prefix) const {
  visitor({join_name(prefix, "weight"), table_, 0, table_.shape()[0]});
}

}  // namespace rapt::nn
