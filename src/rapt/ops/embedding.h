// Embeddings: rows of a table, with positions added and dropout after, in one pass.
#pragma once

#include "rapt/tensor/pass.h"
#include "rapt/tensor/tape.h"

namespace rapt {

// ids (N) i32, table (V, C) -> (N, C). Throws Error for an id outside [0, V), naming it and its
// row.
Tensor embedding(const Tensor& ids, const Tensor& table);

// dropout(factor * table[ids] + positions[position of the row]); positions (longest, C), not
// differentiated, or undefined. Throws Error for a position beyond the table, naming both lengths.
Tensor embedding(const Tensor& ids, const Tensor& table, double factor, const Tensor& positions,
                 const Rows& rows, const kernels::Dropout& site);

// The same in another type: bf16 from tables of f32, rounded once.
Tensor embedding(const Tensor& ids, const Tensor& table, double factor, const Tensor& positions,
                 const Rows& rows, const kernels::Dropout& site, DType type);

}  // namespace rapt
