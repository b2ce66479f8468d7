// Matrix products by kind, size and threads; GFLOP/s and, where few rows make them bound by memory,
// the GB/s of the weight alone.
//
//   bench_kernels_matmul --benchmark_filter='linear_f32/.*threads:2'
//
// Weights rotate through 64 MiB, so that those of one call have left the caches at the next.
#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include "rapt/base/memory.h"
#include "rapt/base/random.h"
#include "rapt/base/runtime.h"
#include "rapt/kernels/matmul.h"

namespace rapt::kernels {
namespace {

template <class T>
struct Buffer {
  std::shared_ptr<void> block;
  T* data;

  explicit Buffer(int64_t count)
      : block(allocate_block(static_cast<size_t>(count) * sizeof(T))),
        data(static_cast<T*>(block.get())) {
    Rng rng(1);
    for (int64_t i = 0; i < count; ++i) data[i] = T(static_cast<float>(rng.uniform(-1, 1)));
  }
};

enum class Kind { linear, independent, dx, dw };

template <class T>
void product(benchmark::State& state, Kind kind) {
  using Master = std::conditional_t<sizeof(T) == 8, double, float>;
  const int64_t M = state.range(0), N = state.range(1), K = state.range(2);
  Runtime runtime({.threads = static_cast<int>(state.range(3)), .log = {}});
  const Runtime::Scope scope(runtime);
  const int64_t copies =
      std::max<int64_t>(1, (int64_t{64} << 20) / (N * K * static_cast<int64_t>(sizeof(T))));
  const Buffer<T> x(M * K), y(M * N), w(copies * N * K);
  const Buffer<Master> dw(kind == Kind::dw ? copies * N * K : 1);
  int64_t copy = 0;
  for (auto _ : state) {
    const T* weight = w.data + copy * N * K;
    if (kind == Kind::linear || kind == Kind::independent) {
      linear(x.data, K, weight, K, nullptr, y.data, N, M, N, K,
             kind == Kind::linear ? RowPolicy::fast : RowPolicy::independent);
    } else if (kind == Kind::dx) {
      linear_dx(y.data, N, weight, K, x.data, K, M, N, K, false);
    } else {
      linear_dw(y.data, N, x.data, K, dw.data + copy * N * K, K, M, N, K, false);
    }
    copy = (copy + 1) % copies;
  }
  using benchmark::Counter;
  const double products = static_cast<double>(M) * static_cast<double>(N) * static_cast<double>(K);
  state.counters["GFLOP/s"] = Counter(2e-9 * products, Counter::kIsIterationInvariantRate);
  state.counters["GB/s"] =
      Counter(1e-9 * static_cast<double>(N * K) * static_cast<double>(sizeof(T)),
              Counter::kIsIterationInvariantRate);
}

// The products of the worked example, of the small model and of the base model, and what decoding
// with the base model multiplies at a step: 32 lines greedily, or by a beam of four.
void shapes(benchmark::internal::Benchmark* bench) {
  const std::vector<std::vector<int64_t>> sizes = {
      {1, 2048, 512},    {14, 2048, 512},  {14, 512, 2048},   {14, 1536, 512},   {14, 512, 512},
      {28, 2048, 512},   {48, 512, 512},   {100, 2048, 512},  {3072, 1024, 256}, {3072, 256, 1024},
      {3072, 768, 256},  {3072, 256, 256}, {3072, 8000, 256}, {4096, 2048, 512}, {4096, 512, 2048},
      {4096, 1536, 512}, {1, 32000, 512},  {32, 32000, 512},  {128, 32000, 512}, {32, 2048, 512},
      {768, 2048, 512},  {768, 512, 2048}, {768, 1536, 512},  {128, 2048, 512}};
  bench->ArgNames({"M", "N", "K", "threads"})->UseRealTime();
  for (const int64_t threads : {1, 2}) {
    for (const auto& s : sizes) bench->Args({s[0], s[1], s[2], threads});
  }
}

void linear_f32(benchmark::State& state) { product<float>(state, Kind::linear); }
void independent_f32(benchmark::State& state) { product<float>(state, Kind::independent); }
void dx_f32(benchmark::State& state) { product<float>(state, Kind::dx); }
void dw_f32(benchmark::State& state) { product<float>(state, Kind::dw); }
void linear_bf16(benchmark::State& state) { product<bf16>(state, Kind::linear); }
void independent_bf16(benchmark::State& state) { product<bf16>(state, Kind::independent); }
void dx_bf16(benchmark::State& state) { product<bf16>(state, Kind::dx); }
void dw_bf16(benchmark::State& state) { product<bf16>(state, Kind::dw); }
void linear_f64(benchmark::State& state) { product<double>(state, Kind::linear); }
void dx_f64(benchmark::State& state) { product<double>(state, Kind::dx); }
void dw_f64(benchmark::State& state) { product<double>(state, Kind::dw); }

BENCHMARK(linear_f32)->Apply(shapes);
BENCHMARK(independent_f32)->Apply(shapes);
BENCHMARK(dx_f32)->Apply(shapes);
BENCHMARK(dw_f32)->Apply(shapes);
BENCHMARK(linear_bf16)->Apply(shapes);
BENCHMARK(independent_bf16)->Apply(shapes);
BENCHMARK(dx_bf16)->Apply(shapes);
BENCHMARK(dw_bf16)->Apply(shapes);
BENCHMARK(linear_f64)->Apply(shapes);
BENCHMARK(dx_f64)->Apply(shapes);
BENCHMARK(dw_f64)->Apply(shapes);

}  // namespace
}  // namespace rapt::kernels
