#include "rapt/tensor/parameter.h"

#include <atomic>

#include "rapt/kernels/elementwise.h"
#include "rapt/tensor/dispatch.h"

namespace rapt {

std::shared_ptr<Parameter::State> Parameter::new_state(const Shape& shape, const Tensor& value) {
  static std::atomic<uint64_t> next{1};
  return std::make_shared<State>(State{next.fetch_add(1), shape, value, {}, {}});
}

Parameter::Parameter(const Tensor& value) {
  RAPT_CHECK(value.defined() && (value.dtype() == DType::f32 || value.dtype() == DType::f64) &&
                 value.contiguous(),
             "Parameter: expected a contiguous f32 or f64 tensor");
  state_ = new_state(value.shape(), value.detach());
}

Parameter Parameter::without_value(const Shape& shape) {
  Parameter parameter;
  parameter.state_ = new_state(shape, {});
  return parameter;
}

Tensor& Parameter::no_value() {
  fail(ErrorKind::failure,
       "Parameter: this model is frozen for inference; for anything else load the weights that it "
       "was made of");
}

void Parameter::set_int8(std::shared_ptr<const Int8Matrix> matrix) {
  RAPT_CHECK(shape() == Shape({matrix->out(), matrix->in()}),
             "Parameter: expected a matrix {} in int8, got ({}, {})", shape().text(), matrix->out(),
             matrix->in());
  state_->int8 = std::move(matrix);
  state_->value = {};
}

void Parameter::set_bf16() {
  make_twin();
  state_->value = {};
}

void Parameter::make_twin() {
  RAPT_CHECK(value().dtype() == DType::f32,
             "Parameter: expected an f32 master for a bf16 twin, got {}",
             dtype_name(value().dtype()));
  if (!twin().defined()) state_->twin = Tensor::empty(shape(), DType::bf16);
  kernels::convert(std::as_const(state_->value).data<float>(), state_->twin.data<bf16>(),
                   value().numel());
}

}  // namespace rapt
