// Differentiable functions made by plain loops, for tests of the tape. Each uses another way of
// sending its gradient back.
#pragma once

#include "rapt/tensor/gradients.h"
#include "rapt/tensor/tape.h"
#include "tests/testing/tensors.h"

namespace rapt::testing {

// target = factor * source, or target += it. Both (N, ..) of f64, with any stride.
inline void put(const Tensor& source, double factor, Tensor target, bool accumulate) {
  const int64_t rows = source.rank() == 0 ? 1 : source.dim(0), cols = source.shape().row_size();
  for (int64_t i = 0; i < rows; ++i) {
    const double* from = source.data<double>() + i * source.row_stride();
    double* to = target.data<double>() + i * target.row_stride();
    for (int64_t j = 0; j < cols; ++j) to[j] = (accumulate ? to[j] : 0) + factor * from[j];
  }
}

// factor * x, its gradient sent by write(), add() or give().
inline Tensor times_by_write(const Tensor& x, double factor) {
  Tensor y = empty_like(x);
  put(x, factor, y, false);
  return record(y, {x},
                [factor](const Tensor& dy, Sink& d) { put(dy, factor, d.write(0), false); });
}
inline Tensor times_by_add(const Tensor& x, double factor) {
  Tensor y = empty_like(x);
  put(x, factor, y, false);
  return record(y, {x}, [factor](const Tensor& dy, Sink& d) {
    auto [dx, first] = d.add(0);
    put(dy, factor, dx, !first);
  });
}
inline Tensor times_by_give(const Tensor& x, double factor) {
  Tensor y = empty_like(x);
  put(x, factor, y, false);
  return record(y, {x}, [factor](const Tensor& dy, Sink& d) {
    Tensor dx = empty_like(dy);
    put(dy, factor, dx, false);
    d.give(0, std::move(dx));
  });
}

// The parts one under the other; parts have one width.
inline Tensor stack_rows(std::initializer_list<Tensor> parts) {
  int64_t rows = 0, at = 0;
  for (const Tensor& part : parts) rows += part.dim(0);
  Tensor y = Tensor::empty({rows, parts.begin()->shape().row_size()}, DType::f64);
  std::vector<int64_t> begins;
  for (const Tensor& part : parts) {
    put(part, 1, y.rows(at, part.dim(0)), false);
    begins.push_back(at);
    at += part.dim(0);
  }
  begins.push_back(at);
  return record(y, parts, [begins](const Tensor& dy, Sink& d) {
    for (size_t i = 0; i + 1 < begins.size(); ++i) {
      const int n = static_cast<int>(i);
      if (!d.wants(n)) continue;
      auto [dx, first] = d.add(n);
      put(dy.rows(begins[i], begins[i + 1] - begins[i]), 1, dx, !first);
    }
  });
}

}  // namespace rapt::testing
