#include "rapt/measure/peak.h"

#include <algorithm>
#include <chrono>

#include "rapt/base/check.h"
#include "rapt/base/thread_pool.h"
#include "rapt/kernels/peak.h"

namespace rapt::measure {

double multiply_add_peak(DType dtype, int threads) {
  RAPT_CHECK(dtype == DType::f32, "multiply_add_peak: expected f32, got {}", dtype_name(dtype));
  using Clock = std::chrono::steady_clock;
  constexpr int64_t kRounds = 400'000;  // a few milliseconds a thread
  ThreadPool pool(threads);
  double best = 0;
  for (int repeat = 0; repeat < 8;
       ++repeat) {  // the best of some short runs: a neighbour may disturb one
    const auto start = Clock::now();
    pool.run(threads, [](int64_t) { kernels::multiply_add_rounds(kRounds); });
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::max(best, static_cast<double>(threads) * static_cast<double>(kRounds) *
                              kernels::flops_per_round() / seconds);
  }
  return best;
}

}  // namespace rapt::measure
