#include "rapt/measure/machine.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <numeric>
#include <string_view>

#include "rapt/base/check.h"
#include "rapt/base/memory.h"
#include "rapt/base/runtime.h"
#include "rapt/base/thread_pool.h"
#include "rapt/kernels/peak.h"
#include "rapt/kernels/peak_memory.h"

namespace rapt::measure {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kArrayBytes = 256 * kMiB;
constexpr int64_t kGrain = kMiB / 4;  // floats that a thread takes at once
constexpr size_t kPageBytes = 4096, kHugePageBytes = 2 * kMiB, kFreshBytes = 128 * kMiB;

using Clock = std::chrono::steady_clock;

double seconds(const std::function<void()>& body) {
  const auto start = Clock::now();
  body();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double least_seconds(int repeats, const std::function<void()>& body) {
  double least = seconds(body);
  for (int i = 1; i < repeats; ++i) least = std::min(least, seconds(body));
  return least;
}

// Operations a second of one thread until `end`: of slices so short that few are interrupted, a
// quarter were faster.
double slices_rate(const kernels::PeakLoop& loop, int64_t rounds, Clock::time_point end) {
  constexpr size_t kLeastSlices = 8;
  std::vector<double> times;
  while (times.size() < kLeastSlices || Clock::now() < end)
    times.push_back(seconds([&] { loop.run(rounds); }));
  std::sort(times.begin(), times.end());
  return static_cast<double>(rounds) * loop.operations / times[times.size() / 4];
}

// Every thread times its own slices, so that one that waits for a core beside busy neighbours does
// not count as slow. Threads beyond the cores would share them and add nothing.
double peak(const kernels::PeakLoop& loop, ThreadPool& pool) {
  constexpr std::chrono::milliseconds kTogether{40};
  int64_t rounds = 1000;
  while (seconds([&] { loop.run(rounds); }) < 1e-4) rounds *= 2;
  std::vector<double> rates(static_cast<size_t>(std::min(pool.threads(), available_cores())));
  const Clock::time_point end = Clock::now() + kTogether;
  pool.run(static_cast<int64_t>(rates.size()), [&](int64_t thread) {
    rates[static_cast<size_t>(thread)] = slices_rate(loop, rounds, end);
  });
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

void measure_array(MachineReport& report, float* x, int64_t count) {
  constexpr int kRepeats = 6;  // the best of them: a neighbour may disturb one
  const double bytes = static_cast<double>(count) * sizeof(float);
  const int64_t half = count / 2;
  report.update = 2 * bytes / least_seconds(kRepeats, [&] {
                    parallel_ranges(count, kGrain, [&](int64_t begin, int64_t end) {
                      kernels::update_memory(x + begin, end - begin, 1.0f);
                    });
                  });
  report.copy = bytes / least_seconds(kRepeats, [&] {
                  parallel_ranges(half, kGrain, [&](int64_t begin, int64_t end) {
                    kernels::copy_memory(x + begin, x + half + begin, end - begin);
                  });
                });
  report.read = bytes / least_seconds(kRepeats, [&] {
                  parallel_ranges(count, kGrain, [&](int64_t begin, int64_t end) {
                    kernels::read_memory(x + begin, end - begin);
                  });
                });
}

int64_t minor_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

// Memory straight from the system, in huge pages or in none; it goes back with the object.
class FreshPages {
 public:
  explicit FreshPages(bool huge) {
    data_ = mmap(nullptr, kMapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data_ == MAP_FAILED)
      fail(ErrorKind::memory, "bench machine: no memory for {} MiB", kMapped / kMiB);
    madvise(data_, kMapped, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  }
  ~FreshPages() { munmap(data_, kMapped); }
  FreshPages(const FreshPages&) = delete;
  FreshPages& operator=(const FreshPages&) = delete;

  // Writes to each page of kFreshBytes, from where a huge page starts.
  void touch() {
    const size_t address = reinterpret_cast<size_t>(data_);
    char* start = static_cast<char*>(data_) + (kHugePageBytes - address % kHugePageBytes);
    parallel_for(kFreshBytes / kHugePageBytes, [&](int64_t piece) {
      char* data = start + static_cast<size_t>(piece) * kHugePageBytes;
      for (size_t i = 0; i < kHugePageBytes; i += kPageBytes) data[i] = 1;
    });
  }

 private:
  static constexpr size_t kMapped = kFreshBytes + kHugePageBytes;
  void* data_;
};

// Nothing if huge pages were asked for and did not come.
std::optional<double> touch_rate(bool huge) {
  double least = 0;
  for (int repeat = 0; repeat < 3; ++repeat) {
    FreshPages pages(huge);
    const int64_t before = minor_faults();
    const double time = seconds([&] { pages.touch(); });
    const size_t faults = static_cast<size_t>(minor_faults() - before);
    if (huge && faults > kFreshBytes / kPageBytes / 2) return std::nullopt;
    least = repeat == 0 ? time : std::min(least, time);
  }
  return static_cast<double>(kFreshBytes) / least;
}

MachineReport measure(Runtime& runtime, float* x, int64_t count) {
  const Runtime::Scope scope(runtime);
  MachineReport report;
  report.threads = runtime.threads();
  for (const kernels::PeakLoop& loop : kernels::peak_loops())
    report.peaks.emplace_back(loop.name, peak(loop, runtime.pool()));
  measure_array(report, x, count);
  report.touch_small = touch_rate(false).value();
  report.touch_huge = touch_rate(true);
  return report;
}

// Of the loops whose type ends so, and of f32.
double best_peak(std::string_view type, int threads) {
  ThreadPool pool(threads);
  double best = f32_peak(threads);
  for (const kernels::PeakLoop& loop : kernels::peak_loops()) {
    if (std::string_view(loop.name).ends_with(type)) best = std::max(best, peak(loop, pool));
  }
  return best;
}

}  // namespace

double f32_peak(int threads) {
  ThreadPool pool(threads);
  return peak(kernels::peak_loops().front(), pool);
}

double bf16_peak(int threads) { return best_peak("bf16", threads); }

double int8_peak(int threads) { return best_peak("int8", threads); }

std::vector<MachineReport> measure_machine() {
  Runtime& all = Runtime::current();
  Runtime one({.threads = 1, .log = {}});
  std::vector<MachineReport> reports;
  {
    const std::shared_ptr<void> block = allocate_block(kArrayBytes);
    float* x = static_cast<float*>(block.get());
    const int64_t count = kArrayBytes / static_cast<int64_t>(sizeof(float));
    parallel_ranges(count, kGrain, [&](int64_t begin, int64_t end) {
      std::fill(x + begin, x + end, 1.0f);  // pages that nobody wrote to would all be one
    });
    reports.push_back(measure(one, x, count));
    if (all.threads() > 1) reports.push_back(measure(all, x, count));
  }
  release_unused_memory();
  return reports;
}

}  // namespace rapt::measure
