// The gradients of one run: a persistent buffer for each parameter that was used. The first writer
// of a step writes, later ones add; nothing is zero-filled. Micro-batches add up until clear().
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "rapt/tensor/parameter.h"
#include "rapt/tensor/tape.h"

namespace rapt {

class Gradients {
 public:
  Gradients() = default;
  Gradients(const Gradients&) = delete;
  Gradients& operator=(const Gradients&) = delete;

  // Whether the parameter received a gradient since clear().
  bool has(const Parameter& parameter) const;
  // The same for some of its rows. of() fills what was not written with zeros: ask before.
  bool has(const NamedParameter& rows) const;
  // Its gradient, in the parameter's shape and type; undefined if it received none.
  Tensor of(const Parameter& parameter);

  // A copy of the handle whose gradient is collected too, e.g. of a model's float input.
  Tensor watch(const Tensor& x);
  // The gradient of a watched tensor, zeros if it received none.
  Tensor of(const Tensor& watched);

  // Marks everything as unwritten and forgets watched tensors. The parameters' buffers stay.
  void clear();

  // The parameter as a leaf, or its bf16 twin, whose gradient is the parameter's (used by Pass).
  Tensor use(const Parameter& parameter);
  Tensor use_twin(const Parameter& parameter);

 private:
  struct Entry {
    std::shared_ptr<GradientSlot> slot;
    Tensor leaf, twin;
  };
  Entry& entry_of(const Parameter& parameter);
  std::unordered_map<uint64_t, Entry> parameters_;  // by Parameter::id
  std::vector<Entry> watched_;
};

}  // namespace rapt
