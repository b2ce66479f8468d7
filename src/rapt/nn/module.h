// What all layers share: parameters with canonical names.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "rapt/base/random.h"
#include "rapt/tensor/parameter.h"
#include "rapt/tensor/pass.h"

namespace rapt::nn {

// Called with every parameter. A tied parameter comes under each of its names.
using Visitor = std::function<void(const NamedParameter& parameter)>;

// A layer or a model. It is immutable while it runs: many threads may share it, each with its own
// Pass.
class Module {
 public:
  virtual ~Module() = default;
  // Calls `visitor` for every parameter in a fixed order; names begin with `prefix` (and a dot, if
  // it is not empty).
  virtual void visit(const Visitor& visitor, const std::string& prefix) const = 0;
};

// "prefix.name", or "name" alone.
std::string join_name(const std::string& prefix, const std::string& name);

std::vector<NamedParameter> parameters(const Module& module);
int64_t count_parameters(const Module& module);  // elements, tied ones once

// Gives every matrix its bf16 twin, or writes it anew from the master: for passes that compute in
// bf16. From then on optimizers write it; other changes of a master need this again.
void make_twins(const Module& module);

// How new weights are made.
struct Init {
  Rng* rng = nullptr;        // null: zeros, for weights that are loaded next
  DType dtype = DType::f32;  // or f64
  bool matrices = true;      // false: matrices get no value, as int8 will take its place

  Parameter uniform(const Shape& shape, double bound) const;  // in [-bound, bound)
  Parameter normal(const Shape& shape, double deviation) const;
  Parameter constant(const Shape& shape, double value) const;
};

}  // namespace rapt::nn
