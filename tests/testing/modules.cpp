#include "tests/testing/modules.h"

#include <algorithm>
#include <cmath>

#include "tests/testing/tensors.h"

namespace rapt::testing {
namespace {

double dot(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = values_of(a), y = values_of(b);
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

// Others may be tied.
bool of_a_layer(const NamedParameter& p) { return p.name.find("layers.") != std::string::npos; }

}  // namespace

::testing::AssertionResult check_module(const nn::Module& module,
                                        const std::function<Tensor(const Pass&)>& forward,
                                        const ModuleCheck& check) {
  Gradients gradients;
  PassOptions recording = check.pass;
  recording.gradients = &gradients;
  const Tensor y = forward(Pass(recording));
  const Tensor dy = random_tensor(y.shape(), 77);
  backward(y, dy);
  const auto value_at = [&](double& element, double value) {
    element = value;
    return dot(forward(Pass(check.pass)), dy);
  };
  Rng rng(5);
  for (const NamedParameter& p : nn::parameters(module)) {
    const Tensor whole = gradients.of(p.parameter);
    if (!whole.defined()) return ::testing::AssertionFailure() << p.name << " received no gradient";
    const std::vector<double> gradient = values_of(whole.rows(p.begin, p.count));
    double largest = 1;
    for (const double g : gradient) largest = std::max(largest, std::abs(g));
    Tensor value = p.value();
    double* element = value.data<double>();
    const int64_t n = value.numel(), tried = std::min(n, check.most);
    for (int64_t i = 0; i < tried; ++i) {
      const int64_t at = n <= check.most ? i : rng.below(n);
      const double before = element[at], h = check.step;
      const double near =
          (value_at(element[at], before + h) - value_at(element[at], before - h)) / (2 * h);
      const double far =
          (value_at(element[at], before + 2 * h) - value_at(element[at], before - 2 * h)) / (4 * h);
      element[at] = before;
      const double numeric = (4 * near - far) / 3;
      if (!(std::abs(numeric - gradient[static_cast<size_t>(at)]) <= check.tolerance * largest)) {
        return ::testing::AssertionFailure()
               << p.name << "[" << at << "]: gradient " << gradient[static_cast<size_t>(at)]
               << ", by finite differences " << numeric;
      }
    }
  }
  return ::testing::AssertionSuccess();
}

::testing::AssertionResult check_first_weights(
    const std::function<std::unique_ptr<nn::Module>(Rng& rng)>& make) {
  Rng rng(1), same(1);
  const std::unique_ptr<nn::Module> module = make(rng), twin = make(same);
  const std::vector<NamedParameter> ours = nn::parameters(*module), theirs = nn::parameters(*twin);
  for (size_t i = 0; i < ours.size(); ++i) {
    const Tensor value = ours[i].value();
    if (!same_bits(value, theirs[i].value()))
      return ::testing::AssertionFailure() << ours[i].name << " differs with the same seed";
    if (value.rank() < 2 || !of_a_layer(ours[i])) continue;
    for (size_t j = 0; j < i; ++j) {
      const Tensor other = ours[j].value();
      if (of_a_layer(ours[j]) && value.shape() == other.shape() && same_bits(value, other)) {
        return ::testing::AssertionFailure()
               << ours[i].name << " begins with the numbers of " << ours[j].name;
      }
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace rapt::testing
