#include "rapt/optim/average.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "rapt/base/check.h"
#include "rapt/base/thread_pool.h"

namespace rapt::optim {
namespace {

constexpr int64_t kGrain = int64_t{1} << 16;

template <class T>
void blend(T* average, const T* value, int64_t count, double share) {
  const T s = static_cast<T>(share);
  for (int64_t i = 0; i < count; ++i) average[i] += s * (value[i] - average[i]);
}

// Calls f with the elements of both tensors in their type, in pieces.
template <class F>
void in_pieces(Tensor& average, Tensor& value, const F& f) {
  parallel_ranges(average.numel(), kGrain, [&](int64_t begin, int64_t end) {
    if (average.dtype() == DType::f32) {
      f(average.data<float>() + begin, value.data<float>() + begin, end - begin);
    } else {
      f(average.data<double>() + begin, value.data<double>() + begin, end - begin);
    }
  });
}

}  // namespace

MovingAverage::MovingAverage(std::vector<NamedParameter> parameters, double decay)
    : parameters_(std::move(parameters)), decay_(decay) {
  RAPT_CHECK(decay > 0 && decay < 1, "moving average: expected a decay in (0, 1), got {}", decay);
  for (const NamedParameter& p : parameters_) averages_.push_back(p.value().contiguous_copy());
}

void MovingAverage::update() {
  ++updates_;
  const auto n = static_cast<double>(updates_);
  const double share = 1 - std::min(decay_, n / (n + 9));
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Tensor value = parameters_[i].value();
    in_pieces(averages_[i], value,
              [&](auto* a, const auto* v, int64_t count) { blend(a, v, count, share); });
  }
}

void MovingAverage::swap() {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Tensor value = parameters_[i].value();
    in_pieces(averages_[i], value,
              [](auto* a, auto* v, int64_t count) { std::swap_ranges(a, a + count, v); });
  }
}

std::vector<StateTensor> MovingAverage::state() const {
  std::vector<StateTensor> all = {{"updates", Tensor::from(std::vector<int64_t>{updates_}, {1})}};
  for (size_t i = 0; i < parameters_.size(); ++i)
    all.push_back({parameters_[i].name, averages_[i]});
  return all;
}

void MovingAverage::load_state(const std::vector<StateTensor>& state) {
  std::map<std::string, Tensor> given;
  for (const StateTensor& s : state) given[s.name] = s.value;
  const auto take = [&](const std::string& name, const Shape& shape, DType dtype) {
    const auto found = given.find(name);
    RAPT_CHECK(found != given.end(), "moving average: expected a tensor {} of {}, there is none",
               name, shape.text());
    const Tensor& value = found->second;
    RAPT_CHECK(value.shape() == shape && value.dtype() == dtype,
               "moving average: expected a tensor {} of {} of {}, got {} of {}", name, shape.text(),
               dtype_name(dtype), value.shape().text(), dtype_name(value.dtype()));
    return value;
  };
  const Tensor counted = take("updates", {1}, DType::i64);
  const int64_t updates = *counted.data<int64_t>();
  std::vector<Tensor> loaded;
  for (size_t i = 0; i < parameters_.size(); ++i)
    loaded.push_back(
        take(parameters_[i].name, averages_[i].shape(), averages_[i].dtype()).contiguous_copy());
  updates_ = updates;
  averages_ = std::move(loaded);
}

}  // namespace rapt::optim
