#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "rapt/base/check.h"
#include "rapt/show/curves_layout.h"

namespace rapt::show {
namespace {

// Ticks of a log axis between powers of ten.
constexpr double kFew[] = {1, 2, 5}, kMany[] = {1, 1.5, 2, 3, 4, 5, 6, 8};

// The least of 1, 2, 5 times a power of ten that is not below `value`.
double round_step(double value) {
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= value * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

}  // namespace

Scale::Scale(double low, double high, bool log)
    : low_(log ? std::log10(low) : low), high_(log ? std::log10(high) : high), log_(log) {
  if (high_ - low_ > 1e-12 * std::max(std::abs(low_), std::abs(high_))) return;
  const double room =
      log ? 0.5 : std::max(std::abs(low_) * 0.5, 0.5);  // a single value: the middle
  low_ -= room;
  high_ += room;
}

std::optional<double> Scale::place(double value) const {
  const double at = log_ ? (value > 0 ? std::log10(value) : NAN) : value;
  if (!std::isfinite(at)) return std::nullopt;
  return (at - low_) / (high_ - low_);
}

std::vector<Tick> Scale::ticks(int about) const {
  if (!log_) return linear_ticks(low_, high_, about);
  std::vector<Tick> ticks;
  const double step = round_step((high_ - low_) / about);
  if (step >= 1) {  // powers of ten
    for (double power = std::ceil(low_ - 1e-9); power <= high_ + 1e-9; power += step) {
      ticks.push_back({(power - low_) / (high_ - low_), fmt::format("{:g}", std::pow(10, power))});
    }
    return ticks;
  }
  for (const std::span<const double> factors :  // less than a power a tick: numbers between
       {std::span<const double>(kFew), std::span<const double>(kMany)}) {
    ticks = ticks_at(factors);
    if (ticks.size() >= 3 && ticks.front().at <= 0.25) return ticks;
  }
  return linear_ticks(std::pow(10, low_), std::pow(10, high_), about);
}

// On a log axis: the factors times powers of ten.
std::vector<Tick> Scale::ticks_at(std::span<const double> factors) const {
  std::vector<Tick> ticks;
  for (double power = std::floor(low_); power <= high_; ++power) {
    for (const double factor : factors) {
      const double at = power + std::log10(factor);
      if (at < low_ - 1e-9 || at > high_ + 1e-9) continue;
      ticks.push_back(
          {(at - low_) / (high_ - low_), fmt::format("{:g}", factor * std::pow(10, power))});
    }
  }
  return ticks;
}

// Equal steps from one value to another, whatever the axis.
std::vector<Tick> Scale::linear_ticks(double low, double high, int about) const {
  std::vector<Tick> ticks;
  const double step = round_step((high - low) / about);
  for (double k = std::ceil(low / step - 1e-9); k * step <= high + step * 1e-9; ++k) {
    const double value = k == 0 ? 0.0 : k * step;
    if (const auto at = place(value)) ticks.push_back({*at, fmt::format("{:g}", value)});
  }
  return ticks;
}

Scales scales_of(std::span<const Curve> curves, const CurveOptions& options) {
  Range x, y;
  for (const Curve& curve : curves) {
    RAPT_CHECK(curve.x.size() == curve.y.size(), "curve '{}': expected {} values of y, got {}",
               curve.name, curve.x.size(), curve.y.size());
    for (size_t i = 0; i < curve.x.size(); ++i) {
      RAPT_CHECK(std::isfinite(curve.x[i]) && (i == 0 || curve.x[i] >= curve.x[i - 1]),
                 "curve '{}': expected x that ascend, got {} at point {}", curve.name, curve.x[i],
                 i);
      if (!std::isfinite(curve.y[i]) || (options.log_y && curve.y[i] <= 0)) continue;
      x.add(curve.x[i]);
      y.add(curve.y[i]);
    }
  }
  RAPT_CHECK(x.low <= x.high, "curves: there is no point to show");
  // A linear axis of losses is read from zero where zero is near.
  if (!options.log_y && y.low > 0 && y.low < y.high * 0.5) y.low = 0;
  return {Scale(x.low, x.high, false), Scale(y.low, y.high, options.log_y)};
}

}  // namespace rapt::show
