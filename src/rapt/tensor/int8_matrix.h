// A matrix of a model that is frozen for inference, in int8 with one scale for each output.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "rapt/tensor/tensor.h"

namespace rapt {

namespace kernels {
struct Int8Weight;
}

class Int8Matrix {
 public:
  // w (out, in) of f32. A row that is not finite gives results that are NaN. Throws Error for other
  // types, and for more inputs than int32 sums can take (65,536).
  explicit Int8Matrix(const Tensor& w);
  // values (out, in), each row with its scale: w = scale value. Throws Error where sizes differ.
  Int8Matrix(std::span<const int8_t> values, std::span<const float> scales, int64_t in);

  int64_t out() const { return out_; }
  int64_t in() const { return in_; }
  kernels::Int8Weight weight() const;  // valid while this lives

 private:
  Int8Matrix(int64_t out, int64_t in);
  void pack(const int8_t* values);

  int64_t out_, in_;
  std::shared_ptr<void> packed_;
  Tensor scales_, sums_;  // of whole panels of outputs
};

// The values and scales that a matrix gets: w (out, in) of f32 -> values (out, in), scales (out).
void quantise(const Tensor& w, std::span<int8_t> values, std::span<float> scales);

}  // namespace rapt
