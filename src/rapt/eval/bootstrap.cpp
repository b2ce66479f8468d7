#include "rapt/eval/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "rapt/base/check.h"
#include "rapt/base/random.h"

namespace rapt::eval {
namespace {

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

Interval interval(std::vector<double> scores) {
  std::sort(scores.begin(), scores.end());
  const size_t outside = scores.size() / 40;  // 2.5 % at either end
  const double width = scores[scores.size() - outside - 1] - scores[outside];
  return {.mean = mean(scores), .half_width = width / 2};
}

void add(Counts& to, const Counts& counts) {
  for (size_t i = 0; i < to.size(); ++i) to[i] += counts[i];
}

}  // namespace

PairedBootstrap paired_bootstrap(const Metric& metric, std::span<const Counts> baseline,
                                 std::span<const Counts> system, const BootstrapOptions& options) {
  if (options.samples < 1 || options.samples > 10'000'000)
    fail(ErrorKind::usage, "bootstrap: expected from 1 to 10,000,000 samples, got {}",
         options.samples);
  RAPT_CHECK(baseline.size() == system.size() && !system.empty(),
             "bootstrap: expected equally many segments of both systems, got {} and {}",
             baseline.size(), system.size());
  const double seen = std::abs(metric.score(sum(system)) - metric.score(sum(baseline)));
  Rng random(options.seed, hash_text("eval.bootstrap"));
  std::vector<double> baseline_scores, system_scores, differences;
  for (int64_t sample = 0; sample < options.samples; ++sample) {
    Counts of_baseline(baseline[0].size(), 0), of_system(of_baseline);
    for (size_t i = 0; i < system.size(); ++i) {
      const auto drawn = static_cast<size_t>(random.below(static_cast<int64_t>(system.size())));
      add(of_baseline, baseline[drawn]);
      add(of_system, system[drawn]);
    }
    baseline_scores.push_back(metric.score(of_baseline));
    system_scores.push_back(metric.score(of_system));
    differences.push_back(std::abs(system_scores.back() - baseline_scores.back()));
  }
  // The differences are moved so that their mean is what equal systems would show. One exactly as
  // large as the one seen counts too: systems that never differ get 1.
  const double shift = mean(differences);
  const auto as_large = std::count_if(differences.begin(), differences.end(),
                                      [&](double d) { return d - shift >= seen; });
  return {.baseline = interval(std::move(baseline_scores)),
          .system = interval(std::move(system_scores)),
          .p_value = static_cast<double>(as_large + 1) / static_cast<double>(options.samples + 1)};
}

}  // namespace rapt::eval
