// Token embeddings with positions: dropout(factor * table[id] + position).
#pragma once

#include "rapt/nn/module.h"

namespace rapt::nn {

class Embedding : public Module {
 public:
  // A table (V, C), normal with deviation 1.
  Embedding(int64_t V, int64_t C, const Init& init);
  // With a table that is there: tied to another layer's.
  explicit Embedding(const Parameter& table) : table_(table) {}

  // ids (N) i32 -> (N, C). `positions` (longest, C) may be undefined. The dropout's site is the
  // pass's path. Throws Error for ids beyond the table and positions beyond `positions`.
  Tensor forward(const Tensor& ids, const Rows& rows, const Tensor& positions, double factor,
                 double dropout, const Pass& pass) const;

  void visit(const Visitor& visitor, const std::string& prefix) const override;
  const Parameter& table() const { return table_; }

 private:
  Parameter table_;
};

}  // namespace rapt::nn
