#include "tests/testing/gradients.h"

#include <numeric>

#include "rapt/tensor/gradients.h"
#include "tests/testing/tensors.h"

namespace rapt::testing {
namespace {

using ::testing::AssertionFailure;
using ::testing::AssertionResult;
using ::testing::AssertionSuccess;

double weighted_sum(const Tensor& y, const std::vector<double>& dy) {
  const std::vector<double> values = values_of(y);
  return std::inner_product(values.begin(), values.end(), dy.begin(), 0.0);
}

// The indices of an input that are tried.
std::vector<int64_t> chosen(int64_t numel, int64_t most, Rng& rng) {
  std::vector<int64_t> indices(static_cast<size_t>(numel));
  std::iota(indices.begin(), indices.end(), 0);
  if (numel <= most) return indices;
  for (int64_t i = 0; i < most; ++i) std::swap(indices[i], indices[i + rng.below(numel - i)]);
  indices.resize(static_cast<size_t>(most));
  return indices;
}

// Gradients of the inputs that `recorded` marks, after `times` backward passes.
std::vector<Tensor> gradients_of(const TensorFunction& f, const std::vector<Tensor>& inputs,
                                 const std::vector<bool>& recorded, const Tensor& dy, int times) {
  Gradients gradients;
  std::vector<Tensor> leaves = inputs;
  std::vector<int64_t> sizes = {dy.numel()};
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (recorded[i]) leaves[i] = gradients.watch(inputs[i]);
    sizes.push_back(inputs[i].numel());
  }
  for (int time = 0; time < times; ++time) {
    const Tensor y = f(leaves);
    poison_free_memory(sizes);
    backward(y, dy);
  }
  std::vector<Tensor> result(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (recorded[i]) result[i] = gradients.of(leaves[i]);
  }
  return result;
}

AssertionResult compare(const char* what, size_t input, const Tensor& got, const Tensor& wanted,
                        double tolerance) {
  const double distance = difference(got, wanted);
  if (distance <= tolerance) return AssertionSuccess();
  return AssertionFailure() << "input " << input << ": " << what << " differs by " << distance;
}

}  // namespace

AssertionResult check_gradients(const TensorFunction& f, const std::vector<Tensor>& inputs,
                                const GradientCheck& check) {
  const Tensor plain = f(inputs);
  if (plain.dtype() != DType::f64) return AssertionFailure() << "expected a function of f64";
  if (plain.recorded()) return AssertionFailure() << "recorded although no input is";
  {
    Gradients gradients;
    std::vector<Tensor> leaves;
    for (const Tensor& x : inputs) leaves.push_back(gradients.watch(x));
    if (!same_bits(f(leaves), plain)) return AssertionFailure() << "other bits when recorded";
  }
  const Tensor dy = random_tensor(plain.shape(), check.seed + 77);
  const std::vector<double> weights = values_of(dy);
  const std::vector<bool> all(inputs.size(), true);
  const std::vector<Tensor> gradients = gradients_of(f, inputs, all, dy, 1);
  const std::vector<Tensor> twice = gradients_of(f, inputs, all, dy, 2);
  Rng rng(check.seed);
  for (size_t n = 0; n < inputs.size(); ++n) {
    std::vector<bool> one(inputs.size(), false);
    one[n] = true;
    const Tensor alone = gradients_of(f, inputs, one, dy, 1)[n];
    AssertionResult result = compare("the gradient alone", n, alone, gradients[n], 1e-13);
    if (!result) return result;
    Tensor doubled = gradients[n].contiguous_copy();
    for (int64_t i = 0; i < doubled.numel(); ++i) doubled.data<double>()[i] *= 2;
    result = compare("the gradient added up twice", n, twice[n], doubled, 1e-13);
    if (!result) return result;

    const std::vector<double> analytic = values_of(gradients[n]);
    double largest = 1;
    for (const double g : analytic) largest = std::max(largest, std::abs(g));
    for (const int64_t i : chosen(inputs[n].numel(), check.most, rng)) {
      const auto at = [&](double steps) {
        std::vector<Tensor> moved = inputs;
        moved[n] = inputs[n].contiguous_copy();
        moved[n].data<double>()[i] += steps * check.step;
        return weighted_sum(f(moved), weights);
      };
      const double numeric = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * check.step);
      const double got = analytic[static_cast<size_t>(i)];
      if (!(std::abs(got - numeric) <= check.tolerance * largest)) {
        return AssertionFailure() << "input " << n << " " << inputs[n].shape().text()
                                  << ", element " << i << ": expected " << numeric << ", got "
                                  << got << " (largest " << largest << ")";
      }
    }
  }
  return AssertionSuccess();
}

AssertionResult check_f32(const TensorFunction& f, const std::vector<Tensor>& inputs,
                          double tolerance) {
  std::vector<Tensor> narrow, wide;
  for (const Tensor& x : inputs) {
    narrow.push_back(x.to(DType::f32));
    wide.push_back(narrow.back().to(DType::f64));
  }
  const Tensor got = f(narrow), wanted = f(wide);
  AssertionResult result = compare("the f32 result", 0, got, wanted, tolerance);
  if (!result || got.dtype() != DType::f32) return result;
  const std::vector<bool> all(inputs.size(), true);
  const Tensor dy = random_tensor(wanted.shape(), 78, DType::f32);
  const std::vector<Tensor> single = gradients_of(f, narrow, all, dy, 1);
  const std::vector<Tensor> exact = gradients_of(f, wide, all, dy.to(DType::f64), 1);
  for (size_t i = 0; i < inputs.size(); ++i) {
    result = compare("the f32 gradient", i, single[i], exact[i], tolerance);
    if (!result) return result;
  }
  return AssertionSuccess();
}

}  // namespace rapt::testing
