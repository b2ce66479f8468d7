// Attention alone: useful GFLOP/s, counted as 4 B H Tq Tk D forward (half of it when causal)
// and 3.5 times that forward and backward.
//
//   bench_kernels_attention [--benchmark_filter=forward/full]
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "rapt/base/random.h"
#include "rapt/kernels/attention.h"

namespace rapt {
namespace {

struct Work {
  int64_t B, H, T, D;
  bool causal = false;
  double dropout = 0;
  bool backward = false;
};

// Queries, keys and values lie side by side, as one product yields them.
void run(benchmark::State& state, const Work& work) {
  const int64_t width = work.H * work.D, ld = 3 * width, rows = work.B * work.T;
  std::vector<float> qkv(static_cast<size_t>(rows * ld)), out(static_cast<size_t>(rows * width)),
      d_out(out.size());
  std::vector<float> d_qkv(qkv.size());
  std::vector<kernels::SoftmaxSum<float>> sums(static_cast<size_t>(rows * work.H));
  Rng rng(1);
  for (float& value : qkv) value = static_cast<float>(rng.normal());
  for (float& value : d_out) value = static_cast<float>(rng.normal());
  std::vector<kernels::Segment> segments;
  for (int64_t b = 0; b < work.B; ++b)
    segments.push_back({b * work.T, work.T, 0, static_cast<uint64_t>(b)});
  kernels::AttentionArgs<float> args;
  args.q = qkv.data();
  args.k = qkv.data() + width;
  args.v = qkv.data() + 2 * width;
  args.q_at = args.k_at = args.v_at = kernels::HeadStrides::packed(ld, work.D);
  args.queries = args.keys = segments;
  args.H = work.H;
  args.Dk = args.Dv = work.D;
  args.scale = 0.125;
  args.mask.causal = work.causal;
  args.split = true;  // as training has it
  args.dropout = {.probability = work.dropout, .key = {1, 2}};
  kernels::AttentionGrads<float> grads;
  grads.out = out.data();
  grads.d_out = d_out.data();
  grads.sums = sums.data();
  grads.out_at = grads.d_out_at = kernels::HeadStrides::packed(width, work.D);
  grads.dq = d_qkv.data();
  grads.dk = d_qkv.data() + width;
  grads.dv = d_qkv.data() + 2 * width;
  grads.dq_at = grads.dk_at = grads.dv_at = args.q_at;
  for (auto _ : state) {
    kernels::attention(args, out.data(), grads.out_at, sums.data());
    if (work.backward) kernels::attention_grad(args, grads);
    benchmark::ClobberMemory();
  }
  const double flops = 4.0 * static_cast<double>(rows * work.H * work.T * work.D) *
                       (work.causal ? 0.5 : 1) * (work.backward ? 3.5 : 1);
  state.counters["GFLOP/s"] =
      benchmark::Counter(flops * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

int register_all() {
  const Work sizes[] = {
      {128, 4, 24, 64}, {2, 8, 7, 64}, {32, 12, 128, 64}, {4, 8, 512, 64}, {4, 8, 2048, 64}};
  for (const bool backward : {false, true}) {
    for (const auto& [causal, dropout] : {std::pair{false, 0.0}, {true, 0.0}, {false, 0.1}}) {
      for (Work work : sizes) {
        work.causal = causal;
        work.dropout = dropout;
        work.backward = backward;
        const std::string name = std::string(backward ? "both_ways/" : "forward/") +
                                 (dropout > 0 ? "dropout"
                                  : causal    ? "causal"
                                              : "full") +
                                 "/B" + std::to_string(work.B) + "_H" + std::to_string(work.H) +
                                 "_T" + std::to_string(work.T);
        benchmark::RegisterBenchmark(name.c_str(), run, work)
            ->UseRealTime()
            ->Unit(benchmark::kMicrosecond);
      }
    }
  }
  return 0;
}
[[maybe_unused]] const int registered = register_all();

}  // namespace
}  // namespace rapt
