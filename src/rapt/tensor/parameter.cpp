#include "rapt/tensor/parameter.h"

#include <atomic>

#include "rapt/kernels/elementwise.h"
#include "rapt/tensor/dispatch.h"

namespace rapt {

Parameter::Parameter(const Tensor& value) {
  static std::atomic<uint64_t> next{1};
  RAPT_CHECK(value.defined() && (value.dtype() == DType::f32 || value.dtype() == DType::f64) &&
                 value.contiguous(),
             "Parameter: expected a contiguous f32 or f64 tensor");
  state_ = std::make_shared<State>(State{next.fetch_add(1), value.detach(), {}});
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
