#include "rapt/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "rapt/base/check.h"

namespace rapt::optim {
namespace {

void check(const Schedule& s, int64_t step) {
  RAPT_CHECK(step >= 1, "schedule: expected a step from 1 on, got {}", step);
  RAPT_CHECK(std::isfinite(s.rate) && s.rate >= 0,
             "schedule: expected a learning rate of at least 0, got {}", s.rate);
  RAPT_CHECK(s.warmup >= 0, "schedule: expected at least 0 warm-up steps, got {}", s.warmup);
  if (s.decay == Decay::linear || s.decay == Decay::cosine) {
    RAPT_CHECK(s.total > s.warmup, "schedule: expected more than {} steps (the warm-up), got {}",
               s.warmup, s.total);
    RAPT_CHECK(std::isfinite(s.final_rate) && s.final_rate >= 0,
               "schedule: expected a final rate of at least 0, got {}", s.final_rate);
  }
  if (s.decay == Decay::step) {
    RAPT_CHECK(s.every >= 1, "schedule: expected a decay every 1 or more steps, got {}", s.every);
    RAPT_CHECK(std::isfinite(s.factor) && s.factor >= 0,
               "schedule: expected a factor of at least 0, got {}", s.factor);
  }
}

}  // namespace

double Schedule::at(int64_t now) const {
  check(*this, now);
  if (now <= warmup) return rate * (static_cast<double>(now) / static_cast<double>(warmup));
  const int64_t after = now - warmup;  // from 1
  // How much of the way to the last step lies behind.
  const double way =
      std::min(1.0, static_cast<double>(after) / static_cast<double>(total - warmup));
  switch (decay) {
    case Decay::constant:
      return rate;
    case Decay::inverse_sqrt:
      return rate * std::sqrt(static_cast<double>(std::max<int64_t>(warmup, 1)) /
                              static_cast<double>(now));
    case Decay::linear:
      return rate + (final_rate - rate) * way;
    case Decay::cosine:
      return final_rate + (rate - final_rate) * (1 + std::cos(std::numbers::pi * way)) / 2;
    case Decay::step: {
      const int64_t drops = (after - 1) / every;
      return rate * std::pow(factor, static_cast<double>(drops));
    }
  }
  fail(ErrorKind::failure, "schedule: unknown decay");
}

Schedule noam(int64_t d_model, int64_t warmup, double factor) {
  RAPT_CHECK(d_model >= 1 && warmup >= 1,
             "noam: expected d_model and warm-up steps of at least 1, got {} and {}", d_model,
             warmup);
  return {.decay = Decay::inverse_sqrt,
          .rate = factor / std::sqrt(static_cast<double>(d_model) * static_cast<double>(warmup)),
          .warmup = warmup};
}

}  // namespace rapt::optim
