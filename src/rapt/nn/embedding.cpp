#include "rapt/nn/embedding.h"

#include <numeric>
#include <span>

#include "rapt/ops/embedding.h"
#include "rapt/ops/int8_linear.h"
#include "rapt/ops/select.h"

namespace rapt::nn {

Embedding::Embedding(int64_t V, int64_t C, const Init& init) : table_(init.normal({V, C}, 1)) {}

Tensor Embedding::forward(const Tensor& ids, const Rows& rows, const Tensor& positions,
                          double factor, double dropout, const Pass& pass) const {
  const auto look_up = [&](const Tensor& own_rows, DType type) {  // a row of the table for each id
    std::vector<int32_t> places(static_cast<size_t>(ids.numel()));
    std::iota(places.begin(), places.end(), 0);
    return embedding(Tensor::from(places, ids.shape()), own_rows, factor, positions, rows,
                     pass.dropout(dropout), type);
  };
  if (table_.int8() != nullptr) return look_up(int8_rows(ids, *table_.int8()), DType::f32);
  if (table_.is_bf16()) {
    const std::span<const int32_t> chosen(ids.data<int32_t>(), static_cast<size_t>(ids.numel()));
    return look_up(select_rows(table_.twin(), chosen).to(DType::f32), DType::bf16);
  }
  return embedding(ids, pass.use(table_), factor, positions, rows, pass.dropout(dropout),
                   pass.compute_type(table_.value().dtype()));
}

void Embedding::visit(const Visitor& visitor, const std::string& prefix) const {
  visitor({join_name(prefix, "weight"), table_, 0, table_.shape()[0]});
}

}  // namespace rapt::nn
