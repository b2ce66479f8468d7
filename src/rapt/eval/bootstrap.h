// Paired bootstrap resampling: whether one system is better than another on this test set by more
// than chance (Koehn 2004, "Statistical significance tests for machine translation evaluation"),
// by sacreBLEU's method.
#pragma once

#include <cstdint>
#include <span>

#include "rapt/eval/metric.h"

namespace rapt::eval {

struct BootstrapOptions {
  int64_t samples = 1000;
  uint64_t seed = 0;
};

// Over the samples: the mean score, and half the width of the interval that holds 95 % of them.
struct Interval {
  double mean = 0;
  double half_width = 0;
};

struct PairedBootstrap {
  Interval baseline, system;
  // How likely a difference as large as the one seen would be if the systems were equally good.
  double p_value = 1;
};

// Scores both systems on samples of the segments, drawn with replacement; the same draws for both,
// and for the same options in every run. `baseline` and `system` are count_segments() of one
// metric and one test set. Throws Error (usage) on fewer than 1 or more than 10 million samples,
// Error (failure) where they are not equally long, or empty.
PairedBootstrap paired_bootstrap(const Metric& metric, std::span<const Counts> baseline,
                                 std::span<const Counts> system,
                                 const BootstrapOptions& options = {});

}  // namespace rapt::eval
