#include "rapt/measure/training.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>

#include "rapt/base/check.h"
#include "rapt/base/profile.h"
#include "rapt/base/runtime.h"
#include "rapt/measure/machine.h"
#include "rapt/measure/training_case.h"
#include "rapt/train/step.h"

namespace rapt::measure {
namespace {

using Clock = std::chrono::steady_clock;

std::unique_ptr<TrainingCase> make_case(const std::string& name, const TrainingOptions& options) {
  if (auto c = make_translation_case(name, options)) return c;
  if (auto c = make_stack_case(name, options)) return c;
  fail(ErrorKind::usage, "bench: there is no training case \"{}\"", name);
}

// Steps on the one batch: seconds of those that count, losses of all.
struct Steps {
  std::vector<double> times, losses;
};

Steps run_steps(const TrainingCase& c, const TrainingOptions& options) {
  constexpr int64_t kWarmUp = 3;
  const auto optimizer = c.optimizer();
  if (options.compute_type == DType::bf16) nn::make_twins(c.model());
  Gradients gradients;
  Steps steps;
  for (int64_t step = 0; step < options.steps + kWarmUp; ++step) {
    if (step == kWarmUp) reset_profile();
    const auto start = Clock::now();
    const train::StepResult done =
        train::take_step([&](const Pass& pass) { return c.loss(pass); }, *optimizer, gradients,
                         {c.rate(), options.seed, static_cast<uint64_t>(step), options.compute_type,
                          options.recompute});
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (step >= kWarmUp) steps.times.push_back(seconds);
    steps.losses.push_back(done.loss.mean());
  }
  std::sort(steps.times.begin(), steps.times.end());
  return steps;
}

}  // namespace

std::vector<std::string> training_cases() {
  return {"toy", "small", "base", "gpt64", "gpt512", "gpt1024", "bert", "bertpad", "vit"};
}

std::unique_ptr<optim::Optimizer> TrainingCase::optimizer() const {
  return optim::make_adamw(
      nn::parameters(model()),
      {.common = {.weight_decay = 0.01, .decay_all = true, .check_finite = false}});
}

Tensor drawn_ids(const Shape& shape, int64_t V, Rng& rng) {
  Tensor ids = Tensor::empty(shape, DType::i32);
  for (int64_t i = 0; i < ids.numel(); ++i)
    ids.data<int32_t>()[i] = static_cast<int32_t>(1 + rng.below(V - 1));
  return ids;
}

double layer_flops(double tokens, double pairs, int64_t C, int64_t F) {
  const double c = static_cast<double>(C), f = static_cast<double>(F);
  return 2 * (tokens * (4 * c * c + 2 * c * f) + 2 * c * pairs);
}

TrainingResult run_training(const std::string& name, const TrainingOptions& options) {
  RAPT_CHECK(options.steps >= 1, "bench: expected at least 1 step, got {}", options.steps);
  const auto c = make_case(name, options);
  const Steps steps = run_steps(*c, options);
  const size_t n = steps.times.size();
  const double median = (steps.times[(n - 1) / 2] + steps.times[n / 2]) / 2;
  TrainingResult result;
  result.name = name;
  result.threads = Runtime::current().threads();
  result.step_ms = median * 1e3;
  result.min_ms = steps.times.front() * 1e3;
  result.max_ms = steps.times.back() * 1e3;
  result.unit = c->unit();
  result.items_per_s = static_cast<double>(c->items()) / median;
  result.flops_per_s = c->flops() / median;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  result.rss_mib = usage.ru_maxrss / 1024;
  result.fraction_of_peak =
      result.flops_per_s /
      (options.compute_type == DType::bf16 ? bf16_peak(result.threads) : f32_peak(result.threads));
  result.loss.assign(steps.losses.begin(),
                     steps.losses.begin() + std::min<std::ptrdiff_t>(3, std::ssize(steps.losses)));
  result.loss.push_back(steps.losses.back());
  return result;
}

}  // namespace rapt::measure
