#include "rapt/measure/sdpa.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "rapt/base/random.h"
#include "rapt/base/runtime.h"
#include "rapt/measure/machine.h"
#include "rapt/nn/torch/scaled_dot_product_attention.h"

namespace rapt::measure {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kB = 4, kH = 8, kD = 64;
constexpr int64_t kLongestDropout = 4096;

// Random numbers of unit variance; a long sequence of them repeats.
Tensor random(int64_t T, DType type, Rng& rng) {
  std::vector<float> values(1'000'003);
  for (float& value : values) value = static_cast<float>(rng.normal());
  Tensor x = Tensor::empty({kB, kH, T, kD}, DType::f32);
  float* to = x.data<float>();
  for (int64_t i = 0; i < x.numel(); ++i) to[i] = values[static_cast<size_t>(i) % values.size()];
  return x.to(type);
}

std::array<int64_t, kB> lengths_of(int64_t T) { return {T, T / 2, T / 4, T / 4}; }

// True where a key is within its sentence's length: (B, 1, 1, T).
Tensor keep_of(int64_t T) {
  Tensor keep = Tensor::zeros({kB, 1, 1, T}, DType::boolean);
  const auto lengths = lengths_of(T);
  for (int64_t b = 0; b < kB; ++b)
    std::fill_n(keep.data<uint8_t>() + b * T, lengths[static_cast<size_t>(b)], uint8_t{1});
  return keep;
}

struct Case {
  std::string mask;
  nn::torch::ScaledDotProductAttentionOptions options;
  double seen;  // the share of keys that a query sees
};

std::vector<Case> cases_of(int64_t T) {
  int64_t kept = 0;
  for (const int64_t length : lengths_of(T)) kept += length;
  std::vector<Case> cases = {{"full", {}, 1},
                             {"causal", {.is_causal = true}, 0.5},
                             {"lengths",
                              {.attn_mask = keep_of(T)},
                              static_cast<double>(kept) / static_cast<double>(kB * T)}};
  if (T <= kLongestDropout)
    cases.push_back({"dropout", {.dropout_p = 0.1, .is_causal = true}, 0.5});
  return cases;
}

// One call, with its backward if `both`.
void run_once(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& d_out,
              const Case& which, bool both, uint64_t seed) {
  const Pass pass({.seed = seed});
  if (!both) {
    nn::torch::scaled_dot_product_attention(q, k, v, which.options, pass);
    return;
  }
  Gradients gradients;
  backward(nn::torch::scaled_dot_product_attention(gradients.watch(q), gradients.watch(k),
                                                   gradients.watch(v), which.options, pass),
           d_out);
}

}  // namespace

void time_attention(const AttentionCases& cases,
                    const std::function<void(const AttentionTiming&)>& report) {
  AttentionTiming timing;
  timing.threads = Runtime::current().threads();
  const double peak =
      cases.type == DType::bf16 ? bf16_peak(timing.threads) : f32_peak(timing.threads);
  Rng rng(cases.seed);
  for (const int64_t T : cases.lengths) {
    timing.T = T;
    const auto draw = [&] { return random(T, cases.type, rng); };
    const Tensor q = draw(), k = draw(), v = draw(), d_out = draw();
    for (const Case& which : cases_of(T)) {
      timing.mask = which.mask;
      for (const bool both : {false, true}) {
        timing.both = both;
        std::vector<double> seconds;
        for (int64_t step = 0; step <= cases.steps; ++step) {
          const auto start = Clock::now();
          run_once(q, k, v, d_out, which, both, cases.seed);
          const double taken = std::chrono::duration<double>(Clock::now() - start).count();
          if (step > 0) seconds.push_back(taken);
        }
        std::sort(seconds.begin(), seconds.end());
        const double median = (seconds[(seconds.size() - 1) / 2] + seconds[seconds.size() / 2]) / 2;
        timing.step_ms = median * 1e3;
        timing.min_ms = seconds.front() * 1e3;
        timing.max_ms = seconds.back() * 1e3;
        timing.tokens_per_s = static_cast<double>(kB * T) / median;
        timing.flops_per_s = 4 * which.seen * static_cast<double>(kB * kH * kD) *
                             static_cast<double>(T) * static_cast<double>(T) * (both ? 3 : 1) /
                             median;
        timing.fraction_of_peak = timing.flops_per_s / peak;
        rusage usage{};
        getrusage(RUSAGE_SELF, &usage);
        timing.rss_mib = usage.ru_maxrss / 1024;
        report(timing);
      }
    }
  }
}

}  // namespace rapt::measure
