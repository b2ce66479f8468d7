// The int8 products as plain loops: the oracle of their tests, bit for bit.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace rapt::kernels::reference {

// q (K) of one row of a weight; its scale.
inline float int8_quantise_output(const float* w, int64_t K, int8_t* q) {
  float largest = 0;
  bool finite = true;
  for (int64_t k = 0; k < K; ++k) {
    finite = finite && std::isfinite(w[k]);
    largest = std::max(largest, std::abs(w[k]));
  }
  const bool zero = !finite || largest < 1e-30f;
  const float factor = zero ? 0 : 127.0f / largest;
  for (int64_t k = 0; k < K; ++k)
    q[k] = zero ? int8_t{0} : static_cast<int8_t>(std::nearbyint(w[k] * factor));
  return !finite ? std::numeric_limits<float>::quiet_NaN() : zero ? 0 : largest / 127.0f;
}

// y (M, N) = x (M, K) w^T + bias; w is q (N, K) times a scale for each row; bias may be null.
inline void int8_linear(const float* x, int64_t ldx, const int8_t* q, const float* scales,
                        const float* bias, float* y, int64_t ldy, int64_t M, int64_t N, int64_t K) {
  std::vector<int64_t> u(static_cast<size_t>(K));
  for (int64_t m = 0; m < M; ++m) {
    const float* const row = x + m * ldx;
    float low = 0, high = 0;
    bool finite = true;
    for (int64_t k = 0; k < K; ++k) {
      finite = finite && std::isfinite(row[k]);
      low = std::min(low, row[k]);
      high = std::max(high, row[k]);
    }
    const float range = high - low;
    finite = finite && std::isfinite(range);
    float scale = finite ? range / 255.0f : std::numeric_limits<float>::quiet_NaN();
    float factor = 255.0f / range;
    if (!finite || range < 1e-30f) {
      factor = 0;
      scale = finite ? 0.0f : scale;
    }
    const auto zero = static_cast<int64_t>(std::nearbyint(finite ? -low * factor : 0.0f));
    for (int64_t k = 0; k < K; ++k) {
      const float nearest = finite ? std::nearbyint(row[k] * factor) : 0.0f;
      u[static_cast<size_t>(k)] = std::clamp<int64_t>(static_cast<int64_t>(nearest) + zero, 0, 255);
    }
    for (int64_t n = 0; n < N; ++n) {
      int64_t sum = 0;
      for (int64_t k = 0; k < K; ++k) sum += (u[static_cast<size_t>(k)] - zero) * q[n * K + k];
      const float both = scale * scales[n];
      const float value = static_cast<float>(sum) * both;
      y[m * ldy + n] = bias == nullptr ? value : value + bias[n];
    }
  }
}

}  // namespace rapt::kernels::reference
