#include "rapt/nn/torch/initialisation.h"

#include <algorithm>
#include <cmath>

#include "rapt/nn/torch/names.h"
#include "rapt/tensor/dispatch.h"

namespace rapt::nn::torch {
namespace {

void draw(const Module& module, Rng& rng, bool all_matrices) {
  const auto visitor = [&](const NamedParameter& p) {
    if (p.begin > 0) return;  // a later part of a stacked parameter
    Tensor value = p.parameter.value();
    const AttentionPart part = attention_part(p.name);
    const bool matrix = value.rank() == 2;
    if (matrix ? !(all_matrices || part == AttentionPart::in) : part == AttentionPart::none) return;
    const double bound =
        matrix ? std::sqrt(6.0 / static_cast<double>(value.dim(0) + value.dim(1))) : 0;
    dispatch_float(value.dtype(), "Init", [&](auto tag) {
      using T = decltype(tag);
      T* x = value.data<T>();
      for (int64_t i = 0; i < value.numel(); ++i)
        x[i] = matrix ? static_cast<T>(rng.uniform(-bound, bound)) : T(0);
    });
  };
  module.visit(visitor, "");
}

}  // namespace

void draw_in_projections(const Module& module, Rng& rng) { draw(module, rng, false); }

void draw_all_matrices(const Module& stack, Rng& rng) { draw(stack, rng, true); }

}  // namespace rapt::nn::torch
