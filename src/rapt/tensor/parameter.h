// A weight of a model: the f32 (or f64) master, and in bf16 training a narrow twin of the same
// layout; or, in a model frozen for inference, the twin or the int8 matrix in the master's place.
//
// Copies are the same parameter: tying two layers is copying one's handle to the other.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rapt/tensor/int8_matrix.h"
#include "rapt/tensor/tensor.h"

namespace rapt {

class Parameter {
 public:
  Parameter() = default;
  explicit Parameter(const Tensor& value);  // contiguous, f32 or f64
  // Of this shape, without a value: a matrix that will be set_int8().
  static Parameter without_value(const Shape& shape);

  bool defined() const { return state_ != nullptr; }
  uint64_t id() const { return state_->id; }  // unique in the process
  // Throws Error where the parameter has no value, as it is frozen.
  Tensor& value() { return has_value() ? state_->value : no_value(); }
  const Tensor& value() const { return has_value() ? state_->value : no_value(); }
  bool has_value() const { return state_->value.defined(); }
  const Shape& shape() const { return has_value() ? state_->value.shape() : state_->shape; }
  bool same_as(const Parameter& other) const { return state_ == other.state_; }

  // The bf16 twin: undefined until make_twin(); the optimizer rewrites it with the master.
  const Tensor& twin() const { return state_->twin; }
  void make_twin();

  // The bf16 twin in the value's place: the model is frozen for inference. Throws Error for a
  // master that is not f32.
  void set_bf16();
  bool is_bf16() const { return !has_value() && twin().defined(); }

  // The matrix in int8, which takes the value's place: null unless the model is frozen. Throws
  // Error for another shape.
  const Int8Matrix* int8() const { return state_->int8.get(); }
  void set_int8(std::shared_ptr<const Int8Matrix> matrix);

 private:
  [[noreturn]] static Tensor& no_value();

  struct State {
    uint64_t id;
    Shape shape;  // of a frozen one
    Tensor value, twin;
    std::shared_ptr<const Int8Matrix> int8;
  };
  static std::shared_ptr<State> new_state(const Shape& shape, const Tensor& value);
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
