// Tensors for tests: random ones, their elements in f64, and comparison.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "rapt/base/random.h"
#include "rapt/tensor/tensor.h"
#include "tests/testing/testing.h"

namespace rapt::testing {

// Uniform in [low, high), the same for the same seed, in f32 the rounded values of f64.
inline Tensor random_tensor(const Shape& shape, uint64_t seed, DType dtype = DType::f64,
                            double low = -1, double high = 1) {
  Rng rng(seed);
  std::vector<double> values(static_cast<size_t>(shape.numel()));
  for (double& value : values) value = rng.uniform(low, high);
  return Tensor::from(values, shape).to(dtype);
}

// Random values at least `gap` away from 0: no finite difference steps over a kink there.
inline Tensor random_away_from_zero(const Shape& shape, uint64_t seed, double gap = 0.05) {
  Tensor x = random_tensor(shape, seed);
  double* value = x.data<double>();
  for (int64_t i = 0; i < x.numel(); ++i) value[i] += value[i] < 0 ? -gap : gap;
  return x;
}

inline Tensor ids(const std::vector<int32_t>& values) {
  return Tensor::from(values, {static_cast<int64_t>(values.size())});
}

inline Tensor bools(const std::vector<int>& values, const Shape& shape) {
  return Tensor::from(std::vector<uint8_t>(values.begin(), values.end()), shape);
}

// The elements in order, as f64, whatever the type.
inline std::vector<double> values_of(const Tensor& x) {
  return x.to(DType::f64).contiguous_copy().to_vector<double>();
}

// max |a - b| / max |b|; infinity for different shapes or numbers that are not finite.
inline double difference(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined() || a.shape() != b.shape()) return INFINITY;
  const std::vector<double> x = values_of(a), y = values_of(b);
  return relative_difference(std::span<const double>(x), std::span<const double>(y));
}

// Whether shape, type and every bit of the elements agree.
inline bool same_bits(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined() || a.shape() != b.shape() || a.dtype() != b.dtype()) {
    return false;
  }
  const Tensor x = a.contiguous_copy(), y = b.contiguous_copy();
  return std::memcmp(x.raw(), y.raw(), static_cast<size_t>(x.numel() * size_of(x.dtype()))) == 0;
}

// The tolerance of the table "what is equal, and how exactly": 1e-5 in f32, 1e-12 in f64.
inline double equal_within(DType dtype) { return dtype == DType::f64 ? 1e-12 : 1e-5; }

// Leaves NaN in blocks of these sizes that are then free: what is read before it is written shows.
inline void poison_free_memory(const std::vector<int64_t>& sizes) {
  std::vector<Tensor> blocks;
  for (const int64_t numel : sizes) {
    for (int i = 0; i < 4; ++i) blocks.push_back(Tensor::full({numel}, DType::f64, NAN));
  }
}

}  // namespace rapt::testing
