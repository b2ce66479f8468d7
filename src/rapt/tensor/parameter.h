// A weight of a model: the f32 (or f64) master, and in bf16 training a narrow twin of the same
// layout.
//
// Copies are the same parameter: tying two layers is copying one's handle to the other.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rapt/tensor/tensor.h"

namespace rapt {

class Parameter {
 public:
  Parameter() = default;
  explicit Parameter(const Tensor& value);  // contiguous, f32 or f64

  bool defined() const { return state_ != nullptr; }
  uint64_t id() const { return state_->id; }  // unique in the process
  Tensor& value() { return state_->value; }
  const Tensor& value() const { return state_->value; }
  const Shape& shape() const { return state_->value.shape(); }
  bool same_as(const Parameter& other) const { return state_ == other.state_; }

  // The bf16 twin: undefined until make_twin(); the optimizer rewrites it with the master.
  const Tensor& twin() const { return state_->twin; }
  void make_twin();

 private:
  struct State {
    uint64_t id;
    Tensor value, twin;
  };
  std::shared_ptr<State> state_;
};

// A parameter, or rows [begin, begin + count) of its first axis, under its canonical name: the
// stacked projection of an attention is visited as its query, key and value.
struct NamedParameter {
  std::string name;
  Parameter parameter;
  int64_t begin = 0, count = 0;

  Tensor value() const { return parameter.value().rows(begin, count); }
};

}  // namespace rapt
