// Learning rates over time, as pure functions of the step: nothing to save or restore.
#pragma once

#include <cstdint>

namespace rapt::optim {

// What follows the warm-up.
enum class Decay {
  constant,
  inverse_sqrt,  // rate * sqrt(warmup / step), Vaswani et al. 2017, section 5.3
  linear,        // down to final_rate at step `total`, and that from there on
  cosine,        // the same along half a cosine, Loshchilov and Hutter 2017
  step,          // times `factor` after each `every` steps
};

struct Schedule {
  Decay decay = Decay::constant;
  double rate = 1e-3;     // at the end of the warm-up
  int64_t warmup = 0;     // steps in which the rate rises to it in a line: step / warmup of it
  int64_t total = 0;      // linear, cosine: the last step; more than warmup
  double final_rate = 0;  // linear, cosine
  int64_t every = 0;      // step: at least 1
  double factor = 0.1;    // step

  // The rate of a step; steps count from 1. Throws Error for settings that do not fit.
  double at(int64_t step) const;
};

// The schedule of Attention Is All You Need: factor * d_model^-0.5 * min(step^-0.5,
// step * warmup^-1.5). Throws Error unless d_model and warmup are at least 1.
Schedule noam(int64_t d_model, int64_t warmup, double factor = 1);

}  // namespace rapt::optim
