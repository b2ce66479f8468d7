// One pass over parameter, gradient and state. Every kernel also writes the parameter's bf16 twin,
// if it has one (null otherwise). The gradient is multiplied by grad_scale first: one over the
// number of tokens, times what clipping leaves.
#pragma once

#include <cstdint>

#include "rapt/kernels/types.h"

namespace rapt::kernels {

// SGD with momentum as PyTorch defines it: g += weight_decay * p; m = momentum * m + (1 -
// dampening) * g (on the first step m = g); g = nesterov ? g + momentum * m : m; p -= rate * g. m
// may be null if momentum is 0.
struct SgdStep {
  double rate = 0, momentum = 0, dampening = 0, weight_decay = 0, grad_scale = 1;
  bool nesterov = false, first = false;
};
void sgd(const SgdStep& step, float* p, const float* g, float* m, bf16* twin, int64_t n);
void sgd(const SgdStep& step, double* p, const double* g, double* m, bf16* twin, int64_t n);

// AdamW (Loshchilov and Hutter 2019) and, with decoupled = false, Adam with L2 (Kingma and Ba
// 2015), as PyTorch defines them. t counts from 1.
struct AdamStep {
  double rate = 0, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0, grad_scale = 1;
  bool decoupled = true;
  int64_t t = 1;
};
void adam(const AdamStep& step, float* p, const float* g, float* m, float* v, bf16* twin,
          int64_t n);
void adam(const AdamStep& step, double* p, const double* g, double* m, double* v, bf16* twin,
          int64_t n);

}  // namespace rapt::kernels
