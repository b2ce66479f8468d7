#include "rapt/optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "rapt/base/check.h"
#include "rapt/base/profile.h"
#include "rapt/base/thread_pool.h"
#include "rapt/kernels/elementwise.h"
#include "rapt/tensor/bytes.h"

namespace rapt::optim {
namespace {

// Elements of one job: the threads share a list of them, over all parameters.
constexpr int64_t kJobElements = int64_t{1} << 16;

// The names that a range must not share memory with, by address.
void check_no_overlap(const std::vector<NamedParameter>& parameters) {
  struct Range {
    const char *begin, *end;
    const std::string* name;
  };
  std::vector<Range> ranges;
  for (const NamedParameter& p : parameters) {
    const Tensor value = p.value();
    if (value.numel() == 0) continue;
    const char* begin = static_cast<const char*>(value.raw());
    ranges.push_back({begin, begin + value.numel() * size_of(value.dtype()), &p.name});
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < ranges.size(); ++i) {
    RAPT_CHECK(ranges[i - 1].end <= ranges[i].begin,
               "optimizer: {} and {} overlap in memory but are not the same parameter (tie them by "
               "copying the Parameter)",
               *ranges[i - 1].name, *ranges[i].name);
  }
}

// The parameters without those that were there under another name.
std::vector<NamedParameter> each_once(const std::vector<NamedParameter>& parameters) {
  std::vector<NamedParameter> result;
  std::set<std::string> names;
  std::set<std::tuple<uint64_t, int64_t, int64_t>> seen;
  for (const NamedParameter& p : parameters) {
    RAPT_CHECK(p.parameter.defined() && p.parameter.shape().rank() > 0,
               "optimizer: expected {} to be a parameter of at least one axis", p.name);
    RAPT_CHECK(p.begin >= 0 && p.count >= 0 && p.begin <= p.parameter.shape()[0] - p.count,
               "optimizer: expected {} to be within {} rows, got {} from {}", p.name,
               p.parameter.shape()[0], p.count, p.begin);
    RAPT_CHECK(names.insert(p.name).second, "optimizer: the name {} comes twice", p.name);
    if (seen.emplace(p.parameter.id(), p.begin, p.count).second) result.push_back(p);
  }
  check_no_overlap(result);
  return result;
}

// Runs body(n) for each job. Small ones that follow each other go to one thread: handing each out
// would cost more than its work.
template <class Job, class Body>
void for_each_job(const std::vector<Job>& jobs, const Body& body) {
  std::vector<size_t> ends;
  int64_t elements = 0;
  for (size_t n = 0; n < jobs.size(); ++n) {
    elements += jobs[n].count;
    if (elements < kJobElements && n + 1 < jobs.size()) continue;
    ends.push_back(n + 1);
    elements = 0;
  }
  parallel_for(static_cast<int64_t>(ends.size()), [&](int64_t group) {
    const size_t g = static_cast<size_t>(group);
    for (size_t n = g == 0 ? 0 : ends[g - 1]; n < ends[g]; ++n) body(n);
  });
}

double sum_of_squares(DType dtype, const char* from, int64_t count) {
  return dtype == DType::f32
             ? kernels::sum_of_squares(reinterpret_cast<const float*>(from), count)
             : kernels::sum_of_squares(reinterpret_cast<const double*>(from), count);
}

}  // namespace

// A parameter that is updated in this step.
struct Optimizer::Active {
  size_t index;
  Tensor value, gradient, twin;
};

// Elements [begin, begin + count) of the n-th active parameter.
struct Optimizer::Job {
  size_t active;
  int64_t begin, count;
};

Optimizer::Optimizer(std::vector<NamedParameter> parameters, const CommonOptions& options,
                     std::vector<std::string> kept, bool squares_gradients)
    : parameters_(each_once(parameters)),
      states_(parameters_.size()),
      options_(options),
      kept_(std::move(kept)),
      squares_gradients_(squares_gradients) {
  RAPT_CHECK(std::isfinite(options.weight_decay) && options.weight_decay >= 0,
             "optimizer: expected a weight decay of at least 0, got {}", options.weight_decay);
  RAPT_CHECK(options.max_norm >= 0, "optimizer: expected max_norm of at least 0, got {}",
             options.max_norm);
}

std::vector<Optimizer::Active> Optimizer::find_active(Gradients& gradients) {
  std::vector<Active> active;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].count > 0 && gradients.has(parameters_[i]))
      active.push_back({i, {}, {}, {}});
  }
  for (Active& a : active) {  // after all were asked: of() fills what was not written
    const NamedParameter& p = parameters_[a.index];
    a.value = p.value();
    a.gradient = gradients.of(p.parameter).rows(p.begin, p.count);
    if (p.parameter.twin().defined()) a.twin = p.parameter.twin().rows(p.begin, p.count);
    State& state = states_[a.index];
    while (state.kept.size() < kept_.size()) {
      state.kept.push_back(Tensor::zeros(a.value.shape(), a.value.dtype()));
    }
  }
  return active;
}

int64_t Optimizer::bytes_to_come() const {
  int64_t bytes = 0;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor value = parameters_[i].value();
    const auto missing = static_cast<int64_t>(kept_.size() - states_[i].kept.size());
    bytes += missing * value.numel() * size_of(value.dtype());
  }
  return bytes;
}

// The norm of the scaled gradients; names the first parameter that spoils it.
double Optimizer::measure(const std::vector<Active>& active, const std::vector<Job>& jobs,
                          double scale, StepResult& result) const {
  std::vector<double> squares(jobs.size());
  for_each_job(jobs, [&](size_t n) {
    const Job& job = jobs[n];
    const Tensor& g = active[job.active].gradient;
    squares[n] = sum_of_squares(
        g.dtype(), static_cast<const char*>(g.raw()) + job.begin * size_of(g.dtype()), job.count);
  });
  double total = 0;
  for (size_t n = 0; n < jobs.size() && result.bad_parameter.empty(); ++n) {
    total += squares[n];
    if (!std::isfinite(total)) {
      result.bad_parameter = parameters_[active[jobs[n].active].index].name;
    }
  }
  const double norm = std::sqrt(total) * scale;
  if (!squares_gradients_ || !result.bad_parameter.empty()) return norm;
  // Squares that are finite here may not be in the f32 of the state.
  const double clip = options_.max_norm > 0 ? std::min(1.0, options_.max_norm / norm) : 1.0;
  for (size_t n = 0; n < jobs.size() && result.bad_parameter.empty(); ++n) {
    const Active& a = active[jobs[n].active];
    if (a.value.dtype() == DType::f32 &&
        squares[n] * scale * clip * scale * clip > std::numeric_limits<float>::max()) {
      result.bad_parameter = parameters_[a.index].name;
    }
  }
  return norm;
}

StepResult Optimizer::step(Gradients& gradients, double scale, double rate) {
  RAPT_CHECK(scale >= 0, "optimizer: expected a scale of at least 0, got {}", scale);
  RAPT_CHECK(std::isfinite(rate) && rate >= 0, "optimizer: expected a rate of at least 0, got {}",
             rate);
  StepResult result;
  if (scale == 0 || std::isinf(scale)) return result;
  std::vector<Active> active = find_active(gradients);
  if (active.empty()) return result;
  double bytes = 0;  // parameters and what is kept for them are read and written, gradients read
  for (const Active& a : active)
    bytes += bytes_of(a.value) * static_cast<double>(3 + 2 * kept_.size());
  const ProfileScope profile("optimizer", 0, bytes);
  std::vector<Job> jobs;
  for (size_t a = 0; a < active.size(); ++a) {
    const int64_t count = active[a].value.numel();
    for (int64_t begin = 0; begin < count; begin += kJobElements) {
      jobs.push_back({a, begin, std::min(kJobElements, count - begin)});
    }
  }
  double clip = 1;
  result.norm = std::nan("");
  if (options_.check_finite || options_.max_norm > 0) {
    result.norm = measure(active, jobs, scale, result);
    if (!result.bad_parameter.empty()) return result;
    if (options_.max_norm > 0) clip = std::min(1.0, options_.max_norm / (result.norm + 1e-6));
  }
  for_each_job(jobs, [&](size_t n) {
    const Job& job = jobs[n];
    Active& a = active[job.active];
    State& state = states_[a.index];
    const auto at = [&](Tensor& x) {
      return x.defined() ? static_cast<char*>(x.raw()) + job.begin * size_of(x.dtype()) : nullptr;
    };
    Piece piece{.dtype = a.value.dtype(),
                .value = at(a.value),
                .gradient = at(a.gradient),
                .kept = {},
                .twin = reinterpret_cast<bf16*>(at(a.twin)),
                .count = job.count,
                .step = state.steps + 1,
                .rate = rate,
                .gradient_scale = scale * clip,
                .weight_decay = 0};
    for (size_t k = 0; k < kept_.size(); ++k) piece.kept[k] = at(state.kept[k]);
    const bool matrix = parameters_[a.index].parameter.shape().rank() >= 2;
    if (matrix || options_.decay_all) piece.weight_decay = options_.weight_decay;
    update(piece);
  });
  for (const Active& a : active) ++states_[a.index].steps;
  ++steps_;
  result.applied = true;
  return result;
}

}  // namespace rapt::optim
