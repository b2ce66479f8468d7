// Layer norm and embedding as plain loops; see reference.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "rapt/kernels/embedding.h"
#include "rapt/kernels/layer_norm.h"
#include "rapt/kernels/reference_elementwise.h"

namespace rapt::kernels::reference {

// Row i of an optional matrix.
template <class T>
T* row_or_null(T* matrix, int64_t i, int64_t ld) {
  return matrix == nullptr ? nullptr : matrix + i * ld;
}

template <class T>
void layer_norm(const LayerNormArgs<T>& a, int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows; ++i) {
    const RowId id = row_id(a.ids, i);
    T* z = a.z != nullptr ? a.z + i * a.ldz : a.y + i * a.ldy;
    T* y = a.y + i * a.ldy;
    T mean = 0, variance = 0;
    for (int64_t j = 0; j < cols; ++j) {
      const T x = dropped(a.dropout, id, j, a.x[i * a.ldx + j]);
      z[j] = a.residual == nullptr ? x : a.residual[i * a.ldr + j] + x;
      mean += z[j];
    }
    mean /= static_cast<T>(cols);
    for (int64_t j = 0; j < cols; ++j) variance += (z[j] - mean) * (z[j] - mean);
    const T rstd = 1 / std::sqrt(variance / static_cast<T>(cols) + static_cast<T>(a.epsilon));
    for (int64_t j = 0; j < cols; ++j) {
      y[j] = (z[j] - mean) * rstd * a.gain[j] + (a.shift == nullptr ? T(0) : a.shift[j]);
    }
    if (a.mean != nullptr) a.mean[i] = mean;
    if (a.rstd != nullptr) a.rstd[i] = rstd;
  }
}

template <class T>
void layer_norm_grad(const LayerNormGrads<T>& a, int64_t rows, int64_t cols) {
  for (int64_t j = 0; j < cols; ++j) {
    if (a.d_gain != nullptr && !a.add_d_gain) a.d_gain[j] = 0;
    if (a.d_shift != nullptr && !a.add_d_shift) a.d_shift[j] = 0;
  }
  for (int64_t i = 0; i < rows; ++i) {
    const RowId id = row_id(a.ids, i);
    const T *z = a.z + i * a.ldz, *dy = a.dy + i * a.lddy;
    T *dx = row_or_null(a.dx, i, a.lddx), *dr = row_or_null(a.d_residual, i, a.lddr);
    const T mean = a.mean[i], rstd = a.rstd[i];
    T mean_g = 0, mean_gn = 0;  // g = dy gain, n = the normalised row
    for (int64_t j = 0; j < cols; ++j) {
      const T n = (z[j] - mean) * rstd, g = dy[j] * a.gain[j];
      mean_g += g / static_cast<T>(cols);
      mean_gn += g * n / static_cast<T>(cols);
      if (a.d_gain != nullptr) a.d_gain[j] += dy[j] * n;
      if (a.d_shift != nullptr) a.d_shift[j] += dy[j];
    }
    for (int64_t j = 0; j < cols; ++j) {
      const T n = (z[j] - mean) * rstd;
      const T dz = rstd * (dy[j] * a.gain[j] - mean_g - n * mean_gn);
      if (dx != nullptr) dx[j] = dropped(a.dropout, id, j, dz) + (a.add_dx ? dx[j] : T(0));
      if (dr != nullptr) dr[j] = dz + (a.add_d_residual ? dr[j] : T(0));
    }
  }
}

template <class T>
void embedding(const EmbeddingArgs<T>& a, T* y, int64_t ldy, int64_t count, int64_t cols) {
  for (int64_t i = 0; i < count; ++i) {
    const RowId id = row_id(a.rows, i);
    const T* table = a.table + a.ids[i] * a.ldt;
    const T* position = a.positions == nullptr ? nullptr : a.positions + id.position * a.ldp;
    for (int64_t j = 0; j < cols; ++j) {
      const T value = static_cast<T>(a.factor) * table[j];
      y[i * ldy + j] = dropped(a.dropout, id, j, position == nullptr ? value : value + position[j]);
    }
  }
}

// d_row += factor * dropout(dy) for columns [begin, end) of one row.
template <class T>
void embedding_grad_row(const EmbeddingArgs<T>& a, RowId id, const T* dy, T* d_row, int64_t begin,
                        int64_t end) {
  for (int64_t j = begin; j < end; ++j) {
    d_row[j] += static_cast<T>(a.factor) * dropped(a.dropout, id, j, dy[j]);
  }
}

template <class T>
void embedding_grad(const EmbeddingArgs<T>& a, const T* dy, int64_t lddy, T* d_table, int64_t V,
                    bool first, int64_t count, int64_t cols) {
  if (first) std::fill(d_table, d_table + V * cols, T(0));
  for (int64_t i = 0; i < count; ++i) {
    embedding_grad_row(a, row_id(a.rows, i), dy + i * lddy, d_table + a.ids[i] * cols, 0, cols);
  }
}

}  // namespace rapt::kernels::reference
