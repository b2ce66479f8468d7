// SGD and Adam as plain loops; see reference.h.
#pragma once

#include <cmath>
#include <cstdint>

#include "rapt/base/check.h"
#include "rapt/kernels/optimizer.h"

namespace rapt::kernels::reference {

template <class T>
void sgd(const SgdStep& s, T* p, const T* g, T* m, bf16* twin, int64_t n) {
  const bool moving = s.momentum != 0;
  RAPT_ASSERT(!moving || m != nullptr);
  const T momentum = static_cast<T>(s.momentum);
  for (int64_t i = 0; i < n; ++i) {
    T step = g[i] * static_cast<T>(s.grad_scale) + static_cast<T>(s.weight_decay) * p[i];
    if (moving) {
      m[i] = s.first ? step : momentum * m[i] + static_cast<T>(1 - s.dampening) * step;
      step = s.nesterov ? step + momentum * m[i] : m[i];
    }
    p[i] -= static_cast<T>(s.rate) * step;
    if (twin != nullptr) twin[i] = bf16(static_cast<float>(p[i]));
  }
}

// What a step of Adam needs of its settings.
struct AdamFactors {
  double keep, l2;          // p is multiplied by `keep`; `l2` p is added to the gradient
  double step, root_scale;  // p -= step * m / (root_scale * sqrt(v) + epsilon)
};

inline AdamFactors adam_factors(const AdamStep& s) {
  const double t = static_cast<double>(s.t);
  const double correction1 = 1 - std::pow(s.beta1, t), correction2 = 1 - std::pow(s.beta2, t);
  return {s.decoupled ? 1 - s.rate * s.weight_decay : 1, s.decoupled ? 0 : s.weight_decay,
          s.rate / correction1, 1 / std::sqrt(correction2)};
}

template <class T>
void adam(const AdamStep& s, T* p, const T* g, T* m, T* v, bf16* twin, int64_t n) {
  const AdamFactors f = adam_factors(s);
  for (int64_t i = 0; i < n; ++i) {
    const T gi = g[i] * static_cast<T>(s.grad_scale) + static_cast<T>(f.l2) * p[i];
    m[i] += (gi - m[i]) * static_cast<T>(1 - s.beta1);
    v[i] = static_cast<T>(s.beta2) * v[i] + static_cast<T>(1 - s.beta2) * gi * gi;
    const T root = std::sqrt(v[i]) * static_cast<T>(f.root_scale) + static_cast<T>(s.epsilon);
    p[i] = p[i] * static_cast<T>(f.keep) - static_cast<T>(f.step) * m[i] / root;
    if (twin != nullptr) twin[i] = bf16(static_cast<float>(p[i]));
  }
}

}  // namespace rapt::kernels::reference
