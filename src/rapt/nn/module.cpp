#include "rapt/nn/module.h"

#include <unordered_set>

#include "rapt/tensor/dispatch.h"

namespace rapt::nn {
namespace {

template <class Draw>
Parameter drawn(const Init& init, const Shape& shape, Draw&& draw) {
  if (!init.matrices && shape.rank() == 2) return Parameter::without_value(shape);
  if (init.rng == nullptr) return Parameter(Tensor::zeros(shape, init.dtype));
  Tensor x = Tensor::empty(shape, init.dtype);
  dispatch_float(init.dtype, "Init", [&](auto tag) {
    using T = decltype(tag);
    T* value = x.data<T>();
    for (int64_t i = 0; i < x.numel(); ++i) value[i] = static_cast<T>(draw(*init.rng));
  });
  return Parameter(x);
}

}  // namespace

std::string join_name(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

std::vector<NamedParameter> parameters(const Module& module) {
  std::vector<NamedParameter> all;
  module.visit([&](const NamedParameter& parameter) { all.push_back(parameter); }, "");
  return all;
}

int64_t count_parameters(const Module& module) {
  std::unordered_set<uint64_t> seen;
  int64_t count = 0;
  for (const NamedParameter& p : parameters(module)) {
    if (seen.insert(p.parameter.id()).second) count += p.parameter.shape().numel();
  }
  return count;
}

void make_twins(const Module& module) {
  std::unordered_set<uint64_t> seen;
  for (NamedParameter& p : parameters(module)) {
    if (p.parameter.shape().rank() >= 2 && seen.insert(p.parameter.id()).second)
      p.parameter.make_twin();
  }
}

Parameter Init::uniform(const Shape& shape, double bound) const {
  return drawn(*this, shape, [bound](Rng& rng) { return rng.uniform(-bound, bound); });
}

Parameter Init::normal(const Shape& shape, double deviation) const {
  return drawn(*this, shape, [deviation](Rng& rng) { return deviation * rng.normal(); });
}

Parameter Init::constant(const Shape& shape, double value) const {
  return Parameter(Tensor::full(shape, dtype, value));
}

}  // namespace rapt::nn
