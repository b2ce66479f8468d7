// One optimizer step over the parameters of the base encoder-decoder without its table (44 M in 256
// tensors) or over 4,096 small ones; GB/s of what a step must move: value, gradient and state.
//
//   bench_optim_step --benchmark_filter=base
#include <benchmark/benchmark.h>

#include "rapt/base/runtime.h"
#include "rapt/optim/optimizer.h"
#include "rapt/tensor/tape.h"

namespace rapt::optim {
namespace {

std::vector<NamedParameter> parameters_of(const std::vector<Shape>& shapes) {
  std::vector<NamedParameter> result;
  for (const Shape& shape : shapes) {
    const Parameter parameter(Tensor::full(shape, DType::f32, 0.01));
    result.push_back({std::to_string(result.size()), parameter, 0, shape[0]});
  }
  return result;
}

std::vector<NamedParameter> base() {
  std::vector<Shape> shapes;
  for (int layer = 0; layer < 12; ++layer) {
    for (int attention = 0; attention < (layer < 6 ? 1 : 2); ++attention) {
      for (const Shape& s :
           {Shape{1536, 512}, Shape{1536}, Shape{512, 512}, Shape{512}, Shape{512}, Shape{512}}) {
        shapes.push_back(s);
      }
    }
    for (const Shape& s :
         {Shape{2048, 512}, Shape{2048}, Shape{512, 2048}, Shape{512}, Shape{512}, Shape{512}}) {
      shapes.push_back(s);
    }
  }
  return parameters_of(shapes);
}

std::vector<NamedParameter> small() { return parameters_of(std::vector<Shape>(4096, Shape{512})); }

void run(benchmark::State& state, const std::vector<NamedParameter>& parameters,
         Optimizer& optimizer, double bytes_each) {
  Runtime runtime({.threads = static_cast<int>(state.range(0)), .log = {}});
  const Runtime::Scope scope(runtime);
  Gradients gradients;
  int64_t elements = 0;
  for (const NamedParameter& p : parameters) {
    const Tensor leaf = gradients.use(p.parameter);
    backward(leaf, Tensor::full(leaf.shape(), DType::f32, 0.001));
    elements += leaf.numel();
  }
  optimizer.step(gradients, 1, 1e-4);
  for (auto _ : state) optimizer.step(gradients, 1, 1e-4);
  state.counters["GB/s"] = benchmark::Counter(static_cast<double>(elements) * bytes_each,
                                              benchmark::Counter::kIsIterationInvariantRate,
                                              benchmark::Counter::kIs1000);
}

void sgd(benchmark::State& state, const std::vector<NamedParameter>& parameters, bool check) {
  const auto optimizer = make_sgd(parameters, {.momentum = 0.9, .common = {.check_finite = check}});
  run(state, parameters, *optimizer, check ? 24 : 20);
}

void adamw(benchmark::State& state, const std::vector<NamedParameter>& parameters, bool check) {
  const auto optimizer =
      make_adamw(parameters, {.common = {.weight_decay = 0.1, .check_finite = check}});
  run(state, parameters, *optimizer, check ? 32 : 28);
}

void threads(benchmark::internal::Benchmark* b) {
  b->ArgName("threads")->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(sgd, base, base(), true)->Apply(threads);
BENCHMARK_CAPTURE(sgd, base_unchecked, base(), false)->Apply(threads);
BENCHMARK_CAPTURE(adamw, base, base(), true)->Apply(threads);
BENCHMARK_CAPTURE(adamw, base_unchecked, base(), false)->Apply(threads);
BENCHMARK_CAPTURE(adamw, small, small(), true)->Apply(threads);

}  // namespace
}  // namespace rapt::optim
