// A dense tensor added to attention's scores, and its gradient.
#pragma once

#include "rapt/kernels/attention.h"

namespace rapt {

// bias[b * stride_b + h * stride_h + i * stride_q + j]; strides of 0 share it over sentences or
// heads.
template <class T>
class DenseBias : public kernels::ScoreBias<T> {
 public:
  DenseBias(const T* bias, int64_t stride_b, int64_t stride_h, int64_t stride_q, int64_t H)
      : bias_(bias), stride_b_(stride_b), stride_h_(stride_h), stride_q_(stride_q), H_(H) {}

  // Where the gradient is added up; same strides as the bias.
  void collect(T* gradient) { gradient_ = gradient; }

  void add(const kernels::ScoreTile& tile, T* scores, int64_t ld) const override {
    for (int64_t i = 0; i < tile.rows; ++i) {
      const T* from = bias_ + at(tile, i);
      for (int64_t j = 0; j < tile.cols; ++j) scores[i * ld + j] += from[j];
    }
  }

  void take_gradient(const kernels::ScoreTile& tile, const T* dscores, int64_t ld) override {
    for (int64_t i = 0; i < tile.rows; ++i) {
      T* to = gradient_ + at(tile, i);
      for (int64_t j = 0; j < tile.cols; ++j) to[j] += dscores[i * ld + j];
    }
  }

  int64_t gradient_group(int64_t b, int64_t h) const override {
    if (gradient_ == nullptr) return -1;
    return (stride_b_ == 0 ? 0 : b) * (stride_h_ == 0 ? 1 : H_) + (stride_h_ == 0 ? 0 : h);
  }

 private:
  int64_t at(const kernels::ScoreTile& tile, int64_t i) const {
    return tile.b * stride_b_ + tile.h * stride_h_ + (tile.q0 + i) * stride_q_ + tile.k0;
  }
  const T* bias_;
  T* gradient_ = nullptr;
  int64_t stride_b_, stride_h_, stride_q_, H_;
};

}  // namespace rapt
