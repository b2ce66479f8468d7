#include "rapt/tensor/pass.h"

#include "rapt/base/check.h"

namespace rapt {

Pass Pass::scope(std::string_view name) const {
  Pass inner = *this;
  if (!inner.path_.empty()) inner.path_ += '.';
  inner.path_ += name;
  return inner;
}

Pass Pass::scope(std::string_view name, int64_t index) const {
  return scope(fmt::format("{}.{}", name, index));
}

bool Pass::recomputes(const Tensor& input) const {
  return options_.recompute && options_.gradients != nullptr && options_.capture == nullptr &&
         input.recorded();
}

Pass Pass::without_recomputing() const {
  Pass other = *this;
  other.options_.recompute = false;
  return other;
}

Tensor Pass::use(const Parameter& parameter) const {
  RAPT_ASSERT(parameter.defined());
  return options_.gradients == nullptr ? parameter.value() : options_.gradients->use(parameter);
}

Tensor Pass::use(const Parameter& parameter, int64_t begin, int64_t count) const {
  return use(parameter).rows(begin, count);
}

Tensor Pass::use_matrix(const Parameter& parameter) const {
  RAPT_ASSERT(parameter.defined());
  if (parameter.is_bf16() && options_.gradients == nullptr) return parameter.twin();
  if (compute_type(parameter.value().dtype()) != DType::bf16) return use(parameter);
  RAPT_CHECK(parameter.twin().defined(),
             "{}: expected a parameter with a bf16 twin, got one without (make_twins)", path_);
  return options_.gradients == nullptr ? parameter.twin() : options_.gradients->use_twin(parameter);
}

Tensor Pass::use_matrix(const Parameter& parameter, int64_t begin, int64_t count) const {
  return use_matrix(parameter).rows(begin, count);
}

DType Pass::compute_type(DType parameters) const {
  const DType type = options_.compute_type.value_or(parameters);
  RAPT_CHECK(precise(type) == parameters,
             "{}: expected parameters of {} for computing in {}, got {}", path_,
             dtype_name(precise(type)), dtype_name(type), dtype_name(parameters));
  return type;
}

kernels::Dropout Pass::dropout(double probability) const {
  const kernels::Dropout dropout = any_dropout(probability);
  return options_.training ? dropout : kernels::Dropout{};
}

kernels::Dropout Pass::any_dropout(double probability) const {
  RAPT_CHECK(probability >= 0 && probability < 1,
             "dropout at {}: expected a probability in [0, 1), got {}", path_, probability);
  return {probability, philox_key(options_.seed, options_.step, hash_text(path_))};
}

Pass Pass::with_capture(AttentionCapture& capture) const {
  Pass other = *this;
  other.options_.capture = &capture;
  return other;
}

bool Pass::wants_weights() const {
  return options_.capture != nullptr &&
         (!options_.capture->wants || options_.capture->wants(path_));
}

void Pass::give_weights(Tensor weights) const {
  RAPT_ASSERT(options_.capture != nullptr);
  options_.capture->entries.push_back({path_, std::move(weights)});
}

}  // namespace rapt
