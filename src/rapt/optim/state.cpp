// The state of an optimizer as named tensors, and back.
#include <map>

#include "rapt/base/check.h"
#include "rapt/optim/optimizer.h"

namespace rapt::optim {
namespace {

Tensor counter(int64_t value) { return Tensor::from(std::vector<int64_t>{value}, {1}); }

// Takes tensors out by name, so that what is left over is known.
class Source {
 public:
  explicit Source(const std::vector<StateTensor>& state) {
    for (const StateTensor& s : state) {
      RAPT_CHECK(tensors_.emplace(s.name, s.value).second, "optimizer state: {} comes twice",
                 s.name);
    }
  }

  bool has(const std::string& name) const { return tensors_.count(name) > 0; }

  Tensor take(const std::string& name, const Shape& shape, DType dtype) {
    const auto found = tensors_.find(name);
    RAPT_CHECK(found != tensors_.end(), "optimizer state: expected a tensor {}, there is none",
               name);
    Tensor value = found->second;
    RAPT_CHECK(value.defined() && value.shape() == shape && value.dtype() == dtype,
               "optimizer state: expected {} to be {} of {}, got {} of {}", name, shape.text(),
               dtype_name(dtype), value.shape().text(), dtype_name(value.dtype()));
    tensors_.erase(found);
    return value;
  }

  int64_t take_counter(const std::string& name) {
    const Tensor value = take(name, {1}, DType::i64);
    const int64_t steps = *value.data<int64_t>();
    RAPT_CHECK(steps >= 0, "optimizer state: expected {} to be at least 0, got {}", name, steps);
    return steps;
  }

  void check_empty() const {
    RAPT_CHECK(tensors_.empty(),
               "optimizer state: {} belongs to no parameter of this model and optimizer",
               tensors_.begin()->first);
  }

 private:
  std::map<std::string, Tensor> tensors_;
};

}  // namespace

std::vector<StateTensor> Optimizer::state() const {
  std::vector<StateTensor> result = {{"steps", counter(steps_)}};
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const std::string& name = parameters_[i].name;
    if (states_[i].steps == 0) continue;
    result.push_back({name + ".steps", counter(states_[i].steps)});
    for (size_t k = 0; k < kept_.size(); ++k) {
      result.push_back({name + "." + kept_[k], states_[i].kept[k]});
    }
  }
  return result;
}

void Optimizer::load_state(const std::vector<StateTensor>& state) {
  Source source(state);
  std::vector<State> loaded(parameters_.size());
  const int64_t steps = source.take_counter("steps");
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const std::string& name = parameters_[i].name;
    if (!source.has(name + ".steps")) continue;
    loaded[i].steps = source.take_counter(name + ".steps");
    const Tensor value = parameters_[i].value();
    for (const std::string& kept : kept_) {
      loaded[i].kept.push_back(
          source.take(fmt::format("{}.{}", name, kept), value.shape(), value.dtype())
              .contiguous_copy());
    }
  }
  source.check_empty();
  states_ = std::move(loaded);
  steps_ = steps;
}

}  // namespace rapt::optim
