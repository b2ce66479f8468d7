#include "rapt/decode/best_tokens.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rapt/base/check.h"
#include "rapt/base/thread_pool.h"
#include "rapt/ops/softmax.h"
#include "rapt/tensor/dispatch.h"

namespace rapt::decode {
namespace {

constexpr double kLeast = -std::numeric_limits<double>::infinity();

// What is not above the last of the best is out, unless it is no number.
template <class T>
std::vector<Candidate> best_of_row(const T* logits, int64_t V, int64_t count, const char* who,
                                   int64_t step) {
  std::vector<Candidate> best;
  T bar = -std::numeric_limits<T>::infinity();
  for (int64_t v = find_above(logits, 0, V, bar); v < V; v = find_above(logits, v + 1, V, bar)) {
    const double logit = static_cast<double>(logits[v]);
    if (!(logit < std::numeric_limits<double>::infinity())) {
      fail(ErrorKind::data, "{}: a logit of step {} is {}; the model's weights are bad", who, step,
           logit);
    }
    // Behind equal ones, whose ids are smaller.
    const auto place =
        std::upper_bound(best.begin(), best.end(), logit,
                         [](double value, const Candidate& c) { return value > c.logit; });
    best.insert(place, {static_cast<int32_t>(v), logit, 0});
    if (static_cast<int64_t>(best.size()) > count) best.pop_back();
    if (static_cast<int64_t>(best.size()) == count) bar = static_cast<T>(best.back().logit);
  }
  if (best.empty()) {
    fail(ErrorKind::data, "{}: the best logit of step {} is {}; the model's weights are bad", who,
         step, kLeast);
  }
  return best;
}

}  // namespace

std::vector<std::vector<Candidate>> best_tokens(const Tensor& logits,
                                                const std::vector<Wanted>& wanted, const char* who,
                                                int64_t step) {
  RAPT_ASSERT(static_cast<int64_t>(wanted.size()) == logits.dim(0));
  std::vector<std::vector<Candidate>> best(wanted.size());
  const Tensor log_sums = log_sum_exp(logits);
  dispatch_float(logits.dtype(), who, [&](auto tag) {
    using T = decltype(tag);
    const int64_t V = logits.dim(1);
    const T* rows = logits.data<T>();
    const T* sums = log_sums.data<T>();
    parallel_ranges(logits.dim(0), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        auto& row = best[static_cast<size_t>(i)];
        const Wanted& want = wanted[static_cast<size_t>(i)];
        row = best_of_row(rows + i * V, V, want.count, who, step);
        if (want.forced >= 0)
          row = {{want.forced, static_cast<double>(rows[i * V + want.forced]), 0}};
        for (Candidate& c : row) c.log_probability = c.logit - static_cast<double>(sums[i]);
      }
    });
  });
  return best;
}

}  // namespace rapt::decode
