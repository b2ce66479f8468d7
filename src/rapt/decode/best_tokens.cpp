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

// One comparison a token: what is not above the last of the best is out, unless it is no number.
template <class T>
std::vector<Candidate> best_of_row(const T* logits, int64_t V, int64_t count, const char* who,
                                   int64_t step) {
  std::vector<Candidate> best;
  double bar = kLeast;
  for (int64_t v = 0; v < V; ++v) {
    const double logit = static_cast<double>(logits[v]);
    if (logit <= bar) continue;
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
    if (static_cast<int64_t>(best.size()) == count) bar = best.back().logit;
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
  const Tensor log_probabilities = log_softmax(logits);
  dispatch_float(logits.dtype(), who, [&](auto tag) {
    using T = decltype(tag);
    const int64_t V = logits.dim(1);
    const T* rows = logits.data<T>();
    const T* log_rows = log_probabilities.data<T>();
    parallel_ranges(logits.dim(0), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        auto& row = best[static_cast<size_t>(i)];
        const Wanted& want = wanted[static_cast<size_t>(i)];
        row = best_of_row(rows + i * V, V, want.count, who, step);
        if (want.forced >= 0)
          row = {{want.forced, static_cast<double>(rows[i * V + want.forced]), 0}};
        for (Candidate& c : row) c.log_probability = static_cast<double>(log_rows[i * V + c.id]);
      }
    });
  });
  return best;
}

}  // namespace rapt::decode
