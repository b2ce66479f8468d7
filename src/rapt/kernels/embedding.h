// Rows of a table, with positions and dropout, and the scatter of their gradient.
#pragma once

#include <cstdint>

#include "rapt/kernels/types.h"

namespace rapt::kernels {

// For each row i: y = dropout(factor * table[ids[i]] + positions[rows[i].position]). positions may
// be null, `rows` too where neither positions nor dropout need it. table (V, cols) with ldt,
// positions (.., cols) with ldp: in bf16 they are f32, and y alone is rounded. Ids and positions
// are checked by the caller.
template <class T>
struct EmbeddingArgs {
  const Precise<T>* table = nullptr;
  const Precise<T>* positions = nullptr;
  const int32_t* ids = nullptr;
  const RowId* rows = nullptr;
  int64_t ldt = 0, ldp = 0;
  double factor = 1;
  Dropout dropout;
};
void embedding(const EmbeddingArgs<float>& args, float* y, int64_t ldy, int64_t count,
               int64_t cols);
void embedding(const EmbeddingArgs<double>& args, double* y, int64_t ldy, int64_t count,
               int64_t cols);
void embedding(const EmbeddingArgs<bf16>& args, bf16* y, int64_t ldy, int64_t count, int64_t cols);

// d_table[ids[i]] += factor * dropout(dy[i]), rows of one id summed in order of i. With `first`,
// rows of the table that no id names are zeroed and the others written.
void embedding_grad(const EmbeddingArgs<float>& args, const float* dy, int64_t lddy, float* d_table,
                    int64_t V, bool first, int64_t count, int64_t cols);
void embedding_grad(const EmbeddingArgs<double>& args, const double* dy, int64_t lddy,
                    double* d_table, int64_t V, bool first, int64_t count, int64_t cols);
void embedding_grad(const EmbeddingArgs<bf16>& args, const bf16* dy, int64_t lddy, float* d_table,
                    int64_t V, bool first, int64_t count, int64_t cols);

}  // namespace rapt::kernels
