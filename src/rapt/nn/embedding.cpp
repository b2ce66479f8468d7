#include "rapt/nn/embedding.h"

#include <numeric>

#include "rapt/ops/embedding.h"
#include "rapt/ops/int8_linear.h"

namespace rapt::nn {

Embedding::Embedding(int64_t V, int64_t C, const Init& init) : table_(init.normal({V, C}, 1)) {}

Tensor Embedding::forward(const Tensor& ids, const Rows& rows, const Tensor& positions,
                          double factor, double dropout, const Pass& pass) const {
  if (table_.int8() != nullptr) {
    std::vector<int32_t> places(static_cast<size_t>(ids.numel()));
    std::iota(places.begin(), places.end(), 0);
    return embedding(Tensor::from(places, ids.shape()), int8_rows(ids, *table_.int8()), factor,
                     positions, rows, pass.dropout(dropout), DType::f32);
  }
  return embedding(ids, pass.use(table_), factor, positions, rows, pass.dropout(dropout),
                   pass.compute_type(table_.value().dtype()));
}

void Embedding::visit(const Visitor& visitor, const std::string& prefix) const {
  visitor({join_name(prefix, "weight"), table_, 0, table_.shape()[0]});
}

}  // namespace rapt::nn
