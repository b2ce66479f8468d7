// Layer normalisation (Ba et al. 2016), alone and with the dropout and residual before it.
#pragma once

#include <cstdint>

#include "rapt/kernels/types.h"

namespace rapt::kernels {

// For each row: z = residual + dropout(x); y = (z - mean) * rstd * gain + shift, with the biased
// variance and rstd = 1 / sqrt(variance + epsilon). residual may be null (z = dropout(x)), shift
// may be null, ids may be null where dropout.probability is 0. z, mean and rstd (one a row) may be
// null: outputs that the backward needs. y may be x; z may be x. In bf16 z is rounded before it is
// normalised: y is the norm of the z that the backward sees.
template <class T>
struct LayerNormArgs {
  const T* x = nullptr;
  const T* residual = nullptr;
  const Precise<T>* gain = nullptr;
  const Precise<T>* shift = nullptr;
  int64_t ldx = 0, ldr = 0;
  double epsilon = 1e-5;
  Dropout dropout;
  const RowId* ids = nullptr;
  T* y = nullptr;
  T* z = nullptr;
  Precise<T>* mean = nullptr;
  Precise<T>* rstd = nullptr;
  int64_t ldy = 0, ldz = 0;
};
void layer_norm(const LayerNormArgs<float>& args, int64_t rows, int64_t cols);
void layer_norm(const LayerNormArgs<double>& args, int64_t rows, int64_t cols);
void layer_norm(const LayerNormArgs<bf16>& args, int64_t rows, int64_t cols);

// dz from dy; d_residual = dz and dx = dropout(dz), each written or (flag) added to; either may be
// null. d_gain and d_shift (cols) likewise: sums over fixed blocks of rows, in order. dx or
// d_residual may be dy.
template <class T>
struct LayerNormGrads {
  const T* z = nullptr;
  const Precise<T>* mean = nullptr;
  const Precise<T>* rstd = nullptr;
  const Precise<T>* gain = nullptr;
  const T* dy = nullptr;
  int64_t ldz = 0, lddy = 0;
  Dropout dropout;
  const RowId* ids = nullptr;
  T* dx = nullptr;
  T* d_residual = nullptr;
  Precise<T>* d_gain = nullptr;
  Precise<T>* d_shift = nullptr;
  int64_t lddx = 0, lddr = 0;
  bool add_dx = false, add_d_residual = false, add_d_gain = false, add_d_shift = false;
};
void layer_norm_grad(const LayerNormGrads<float>& args, int64_t rows, int64_t cols);
void layer_norm_grad(const LayerNormGrads<double>& args, int64_t rows, int64_t cols);
void layer_norm_grad(const LayerNormGrads<bf16>& args, int64_t rows, int64_t cols);

}  // namespace rapt::kernels
