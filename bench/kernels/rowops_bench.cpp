// The kernels that go row by row, against the memory's speed: GB/s counts each operand once as it
// is read and once as it is written, with all threads of this process.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "rapt/base/memory.h"
#include "rapt/base/random.h"
#include "rapt/kernels/elementwise.h"
#include "rapt/kernels/embedding.h"
#include "rapt/kernels/layer_norm.h"
#include "rapt/kernels/optimizer.h"
#include "rapt/kernels/softmax.h"

namespace {

using namespace rapt::kernels;

// f32 numbers in a block of the pool, as the library holds them.
class Numbers {
 public:
  explicit Numbers(int64_t n, double low = -1, double high = 1)
      : block_(rapt::allocate_block(static_cast<size_t>(n) * sizeof(float))) {
    rapt::Rng rng(1);
    std::vector<float> some(4099);
    for (float& value : some) value = static_cast<float>(rng.uniform(low, high));
    for (int64_t i = 0; i < n; ++i) data()[i] = some[static_cast<size_t>(i) % some.size()];
  }
  float* data() { return static_cast<float*>(block_.get()); }

 private:
  std::shared_ptr<void> block_;
};

std::vector<RowId> row_ids(int64_t rows) {
  std::vector<RowId> ids;
  for (int64_t i = 0; i < rows; ++i) {
    ids.push_back({static_cast<uint64_t>(i / 30), static_cast<uint32_t>(i % 30)});
  }
  return ids;
}

void count_bytes(benchmark::State& state, int64_t bytes) {
  state.counters["GB/s"] = benchmark::Counter(static_cast<double>(bytes) * 1e-9,
                                              benchmark::Counter::kIsIterationInvariantRate);
}

const Dropout kTenth = {0.1, {1, 2}};

void Add(benchmark::State& state) {
  const int64_t rows = state.range(0), cols = state.range(1), n = rows * cols;
  Numbers a(n), b(n), y(n);
  for (auto _ : state) add(a.data(), cols, b.data(), cols, y.data(), cols, rows, cols);
  count_bytes(state, n * 12);
}

void DropRows(benchmark::State& state) {
  const int64_t rows = state.range(0), cols = state.range(1), n = rows * cols;
  Numbers x(n), y(n);
  const auto ids = row_ids(rows);
  for (auto _ : state) dropout(kTenth, ids.data(), x.data(), cols, y.data(), cols, rows, cols);
  count_bytes(state, n * 8);
}

template <Activation kind>
void Activate(benchmark::State& state) {
  const int64_t rows = state.range(0), cols = state.range(1), n = rows * cols;
  Numbers x(n), y(n);
  for (auto _ : state) activation(kind, x.data(), cols, y.data(), cols, rows, cols);
  count_bytes(state, n * 8);
}

template <Activation kind>
void ActivateGrad(benchmark::State& state) {
  const int64_t rows = state.range(0), cols = state.range(1), n = rows * cols;
  Numbers x(n), dy(n), dx(n);
  for (auto _ : state) {
    activation_grad(kind, x.data(), cols, dy.data(), cols, dx.data(), cols, rows, cols);
  }
  count_bytes(state, n * 12);
}

void Softmax(benchmark::State& state) {
  const int64_t rows = state.range(0), cols = state.range(1), n = rows * cols;
  Numbers x(n), y(n);
  for (auto _ : state) softmax(x.data(), cols, y.data(), cols, rows, cols);
  count_bytes(state, n * 8);
}

void CrossEntropy(benchmark::State& state) {
  const int64_t rows = state.range(0), V = state.range(1), n = rows * V;
  Numbers logits(n, -4, 4), d(n), losses(rows);
  const std::vector<int32_t> targets(static_cast<size_t>(rows), 17);
  for (auto _ : state) {
    cross_entropy(logits.data(), V, targets.data(), -100, 0.1, losses.data(), d.data(), V, rows, V);
  }
  count_bytes(state, n * 8);
}

void CrossEntropyInPlace(benchmark::State& state) {
  const int64_t rows = state.range(0), V = state.range(1), n = rows * V;
  Numbers logits(n, -4, 4), losses(rows);
  const std::vector<int32_t> targets(static_cast<size_t>(rows), 17);
  for (auto _ : state) {
    cross_entropy(logits.data(), V, targets.data(), -100, 0.1, losses.data(), logits.data(), V,
                  rows, V);
  }
  count_bytes(state, n * 8);
}

void LayerNorm(benchmark::State& state, double probability) {
  const int64_t rows = state.range(0), cols = state.range(1), n = rows * cols;
  Numbers x(n), residual(n), y(n), z(n), gain(cols), shift(cols), mean(rows), rstd(rows);
  const auto ids = row_ids(rows);
  LayerNormArgs<float> a;
  a.x = x.data(), a.residual = residual.data(), a.gain = gain.data(), a.shift = shift.data();
  a.y = y.data(), a.z = z.data(), a.mean = mean.data(), a.rstd = rstd.data();
  a.ldx = a.ldr = a.ldy = a.ldz = cols;
  a.dropout = {probability, {1, 2}}, a.ids = ids.data();
  for (auto _ : state) layer_norm(a, rows, cols);
  count_bytes(state, n * 16);
}

void LayerNormGrad(benchmark::State& state, double probability) {
  const int64_t rows = state.range(0), cols = state.range(1), n = rows * cols;
  Numbers z(n), dy(n), dx(n), dr(n), gain(cols), mean(rows), rstd(rows), d_gain(cols),
      d_shift(cols);
  const auto ids = row_ids(rows);
  LayerNormGrads<float> a;
  a.z = z.data(), a.mean = mean.data(), a.rstd = rstd.data(), a.gain = gain.data();
  a.dy = dy.data(), a.dx = dx.data(), a.d_residual = dr.data();
  a.d_gain = d_gain.data(), a.d_shift = d_shift.data();
  a.ldz = a.lddy = a.lddx = a.lddr = cols;
  a.dropout = {probability, {1, 2}}, a.ids = ids.data();
  for (auto _ : state) layer_norm_grad(a, rows, cols);
  count_bytes(state, n * 16);
}

std::vector<int32_t> random_ids(int64_t count, int64_t V) {
  rapt::Rng rng(3);
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < count; ++i) ids.push_back(static_cast<int32_t>(rng.below(V)));
  return ids;
}

void Embedding(benchmark::State& state) {
  const int64_t count = state.range(0), V = state.range(1), cols = state.range(2);
  Numbers table(V * cols), positions(512 * cols), y(count * cols);
  const auto ids = random_ids(count, V);
  const auto rows = row_ids(count);
  EmbeddingArgs<float> a;
  a.table = table.data(), a.positions = positions.data(), a.ids = ids.data(), a.rows = rows.data();
  a.ldt = a.ldp = cols, a.factor = 22, a.dropout = kTenth;
  for (auto _ : state) embedding(a, y.data(), cols, count, cols);
  count_bytes(state, count * cols * 8);
}

void EmbeddingGrad(benchmark::State& state) {
  const int64_t count = state.range(0), V = state.range(1), cols = state.range(2);
  Numbers dy(count * cols), d_table(V * cols);
  const auto ids = random_ids(count, V);
  const auto rows = row_ids(count);
  EmbeddingArgs<float> a;
  a.ids = ids.data(), a.rows = rows.data(), a.dropout = kTenth;
  for (auto _ : state) embedding_grad(a, dy.data(), cols, d_table.data(), V, true, count, cols);
  count_bytes(state, (count + V) * cols * 4);
}

void Sgd(benchmark::State& state) {
  const int64_t n = state.range(0);
  Numbers p(n), g(n, -1e-3, 1e-3), m(n, -1e-3, 1e-3);
  for (auto _ : state) {
    sgd({.rate = 1e-4, .momentum = 0.9}, p.data(), g.data(), m.data(), nullptr, n);
  }
  count_bytes(state, n * 20);
}

void AdamW(benchmark::State& state, bool with_twin) {
  const int64_t n = state.range(0);
  Numbers p(n), g(n, -1e-3, 1e-3), m(n, -1e-3, 1e-3), v(n, 0, 1e-6);
  Numbers half(with_twin ? n / 2 : 0);
  rapt::bf16* twin = with_twin ? reinterpret_cast<rapt::bf16*>(half.data()) : nullptr;
  for (auto _ : state) {
    adam({.rate = 1e-4, .weight_decay = 0.01, .t = 100}, p.data(), g.data(), m.data(), v.data(),
         twin, n);
  }
  count_bytes(state, n * (with_twin ? 30 : 28));
}

// What the memory allows: one operand read and written in place.
void UpdateInPlace(benchmark::State& state) {
  const int64_t n = state.range(0);
  Numbers x(n);
  for (auto _ : state) scale(x.data(), n, 1.0, x.data(), n, 1, n, false);
  count_bytes(state, n * 8);
}

void SumOfSquares(benchmark::State& state) {
  const int64_t n = state.range(0);
  Numbers x(n);
  for (auto _ : state) benchmark::DoNotOptimize(sum_of_squares(x.data(), n));
  count_bytes(state, n * 4);
}

void row_sizes(benchmark::internal::Benchmark* b) {
  b->Args({3072, 256})
      ->Args({4096, 512})
      ->Args({4096, 2048})
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond);
}
void lengths(benchmark::internal::Benchmark* b) {
  b->Arg(10'000'000)->Arg(44'000'000)->UseRealTime()->Unit(benchmark::kMillisecond);
}

BENCHMARK(UpdateInPlace)->Apply(lengths);
BENCHMARK(SumOfSquares)->Apply(lengths);
BENCHMARK(Sgd)->Apply(lengths);
BENCHMARK_CAPTURE(AdamW, plain, false)->Apply(lengths);
BENCHMARK_CAPTURE(AdamW, twin, true)->Apply(lengths);
BENCHMARK(Add)->Apply(row_sizes);
BENCHMARK(DropRows)->Apply(row_sizes);
BENCHMARK(Activate<Activation::relu>)->Apply(row_sizes);
BENCHMARK(Activate<Activation::gelu>)->Apply(row_sizes);
BENCHMARK(Activate<Activation::gelu_tanh>)->Apply(row_sizes);
BENCHMARK(ActivateGrad<Activation::relu>)->Apply(row_sizes);
BENCHMARK(ActivateGrad<Activation::gelu>)->Apply(row_sizes);
BENCHMARK(ActivateGrad<Activation::gelu_tanh>)->Apply(row_sizes);
BENCHMARK(Softmax)->Apply(row_sizes);
BENCHMARK_CAPTURE(LayerNorm, plain, 0)->Apply(row_sizes);
BENCHMARK_CAPTURE(LayerNorm, dropout, 0.1)->Apply(row_sizes);
BENCHMARK_CAPTURE(LayerNormGrad, plain, 0)->Apply(row_sizes);
BENCHMARK_CAPTURE(LayerNormGrad, dropout, 0.1)->Apply(row_sizes);
BENCHMARK(CrossEntropy)
    ->Args({3072, 8000})
    ->Args({512, 50257})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(CrossEntropyInPlace)
    ->Args({3072, 8000})
    ->Args({512, 50257})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(Embedding)->Args({4096, 32000, 512})->UseRealTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(EmbeddingGrad)
    ->Args({4096, 32000, 512})
    ->Args({3072, 8000, 256})
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
