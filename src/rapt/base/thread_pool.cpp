#include "rapt/base/thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "rapt/base/check.h"
#include "rapt/base/cpu_quota.h"
#include "rapt/base/futex.h"
#include "rapt/base/runtime.h"

namespace rapt {
namespace {

constexpr std::chrono::microseconds kSpin{50};  // about ten times what a sleeper takes to wake
constexpr int kJobs = 16;                       // callers served at once; more run on their own

thread_local bool inside_chunk = false;

// How many forks lie between this process and the first one of its kind. Threads of an older
// generation do not exist here.
std::atomic<uint64_t> fork_generation{0};

uint64_t current_generation() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { ++fork_generation; });
  RAPT_CHECK(registered == 0, "thread pool: cannot watch for forks: error {}", registered);
  return fork_generation.load(std::memory_order_relaxed);
}

class ChunkScope {
 public:
  ChunkScope() : before_(inside_chunk) { inside_chunk = true; }
  ~ChunkScope() { inside_chunk = before_; }
  ChunkScope(const ChunkScope&) = delete;
  ChunkScope& operator=(const ChunkScope&) = delete;

 private:
  bool before_;
};

// One loop that is being worked on. Jobs belong to the pool, so that a worker may look at one at
// any time; it may touch more than `state` only between join() and leave().
struct alignas(64) Job {
  // Number of workers inside, and flags.
  static constexpr uint32_t kTaken = 1u << 31;    // a caller owns the job
  static constexpr uint32_t kOpen = 1u << 30;     // workers may join
  static constexpr uint32_t kWaiting = 1u << 29;  // the caller sleeps until the last worker leaves
  static constexpr uint32_t kWorkers = kWaiting - 1;

  std::atomic<uint32_t> state{0};
  std::atomic<int64_t> next{0};
  std::atomic<int64_t> chunks{0};
  const std::function<void(int64_t)>* body = nullptr;

  alignas(64) std::mutex error_mutex;
  std::exception_ptr error;
  int64_t error_chunk = 0;

  bool take() {
    uint32_t idle = 0;
    return state.load(std::memory_order_relaxed) == 0 &&
           state.compare_exchange_strong(idle, kTaken, std::memory_order_acquire);
  }

  void open(int64_t count, const std::function<void(int64_t)>& what) {
    next.store(0, std::memory_order_relaxed);
    chunks.store(count, std::memory_order_relaxed);
    body = &what;
    error = nullptr;
    state.fetch_or(kOpen, std::memory_order_release);
  }

  bool has_work() const {
    return (state.load(std::memory_order_relaxed) & kOpen) != 0 &&
           next.load(std::memory_order_relaxed) < chunks.load(std::memory_order_relaxed);
  }

  bool join() {
    uint32_t seen = state.load(std::memory_order_relaxed);
    while ((seen & kOpen) != 0) {
      if (state.compare_exchange_weak(seen, seen + 1, std::memory_order_acquire)) return true;
    }
    return false;
  }

  void leave() {
    const uint32_t before = state.fetch_sub(1, std::memory_order_release);
    if ((before & kWaiting) != 0 && (before & kWorkers) == 1) futex_wake(state, 1);
  }

  void work() noexcept {
    const ChunkScope scope;
    const int64_t count = chunks.load(std::memory_order_relaxed);
    for (;;) {
      const int64_t chunk = next.fetch_add(1, std::memory_order_relaxed);
      if (chunk >= count) return;
      try {
        (*body)(chunk);
      } catch (...) {
        keep_error(chunk);
        next.store(count, std::memory_order_relaxed);  // no chunk begins any more
      }
    }
  }

  // Chunks begin in order, so whatever lies below a chunk that threw has begun, too: the least
  // index that throws is always among those seen here.
  void keep_error(int64_t chunk) {
    const std::lock_guard lock(error_mutex);
    if (error != nullptr && error_chunk < chunk) return;
    error = std::current_exception();
    error_chunk = chunk;
  }

  // Lets no worker in any more and waits until the last has left.
  void close() {
    state.fetch_and(~kOpen, std::memory_order_relaxed);
    const auto empty = [&] { return (state.load(std::memory_order_acquire) & kWorkers) == 0; };
    if (spin_until(kSpin, empty)) return;
    uint32_t seen = state.fetch_or(kWaiting, std::memory_order_acquire) | kWaiting;
    while ((seen & kWorkers) != 0) {
      futex_wait(state, seen);
      seen = state.load(std::memory_order_acquire);
    }
  }

  std::exception_ptr give_back() {
    std::exception_ptr result = std::move(error);
    error = nullptr;
    body = nullptr;
    state.store(0, std::memory_order_release);
    return result;
  }
};

void run_alone(int64_t chunks, const std::function<void(int64_t)>& body) {
  const ChunkScope scope;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) body(chunk);
}

// The workers of one process and the loops that they share.
class Crew {
 public:
  explicit Crew(int threads) : threads_(threads), generation_(current_generation()) {}
  ~Crew();

  int threads() const { return threads_; }
  bool lives_here() const { return generation_ == current_generation(); }

  // Starts the workers, once; throws Error if the system gives no threads.
  void start();
  void run(int64_t chunks, const std::function<void(int64_t)>& body);

  Crew* abandoned = nullptr;  // the next of those whose threads a fork left behind

 private:
  void worker(size_t index);
  Job* take_job();
  Job* join_any(size_t start);
  void publish();

  const int threads_;
  const uint64_t generation_;
  std::atomic<bool> started_{false};
  std::vector<std::thread> workers_;
  std::array<Job, kJobs> jobs_;
  alignas(64) std::atomic<uint32_t> news_{0};  // counts the jobs opened; workers watch it
  std::atomic<bool> stop_{false};
  alignas(64) std::atomic<int> sleepers_{0};
};

Crew::~Crew() {
  stop_.store(true);
  publish();
  for (std::thread& worker : workers_) worker.join();
}

void Crew::start() {
  if (started_.exchange(true)) return;
  // Signals are for the threads of the program, not for ours.
  sigset_t ours, before;
  sigfillset(&ours);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGPROF})
    sigdelset(&ours, fault);
  pthread_sigmask(SIG_SETMASK, &ours, &before);
  std::string problem;
  try {
    workers_.reserve(static_cast<size_t>(threads_) - 1);
    for (size_t i = 1; i < static_cast<size_t>(threads_); ++i) {
      workers_.emplace_back([this, i] { worker(i); });
    }
  } catch (const std::exception& error) {
    problem = error.what();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  RAPT_CHECK(problem.empty(), "thread pool: cannot start thread {} of {}: {} (use fewer threads)",
             workers_.size() + 2, threads_, problem);
}

Job* Crew::take_job() {
  for (Job& job : jobs_) {
    if (job.take()) return &job;
  }
  return nullptr;
}

Job* Crew::join_any(size_t start) {
  for (size_t i = 0; i < kJobs; ++i) {
    Job& job = jobs_[(start + i) % kJobs];
    if (job.has_work() && job.join()) return &job;
  }
  return nullptr;
}

// A worker that goes to sleep first counts itself, then lets the kernel compare news_ once more;
// the order here is the opposite, so one of the two sees the other.
void Crew::publish() {
  news_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) > 0) futex_wake(news_, threads_);
}

void Crew::worker(size_t index) {
  for (;;) {
    const uint32_t seen = news_.load(std::memory_order_acquire);
    if (stop_.load(std::memory_order_acquire)) return;
    if (Job* job = join_any(threads_ > 2 ? index : 0)) {
      job->work();
      job->leave();
      continue;
    }
    const auto news = [&] { return news_.load(std::memory_order_acquire) != seen; };
    if (spin_until(kSpin, news)) continue;
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    futex_wait(news_, seen);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }
}

void Crew::run(int64_t chunks, const std::function<void(int64_t)>& body) {
  Job* job = take_job();
  if (job == nullptr) return run_alone(chunks, body);
  job->open(chunks, body);
  publish();
  job->work();
  RAPT_CHECK(lives_here(),
             "thread pool: a chunk called fork and its child left the chunk: "
             "the other chunks run in the parent (leave the child by _exit or exec)");
  job->close();
  if (const std::exception_ptr error = job->give_back()) std::rethrow_exception(error);
}

std::atomic<Crew*> abandoned_crews{nullptr};

// Keeps a crew whose threads do not exist in this process: they cannot be joined.
void abandon(Crew* crew) {
  crew->abandoned = abandoned_crews.load();
  while (!abandoned_crews.compare_exchange_weak(crew->abandoned, crew)) {
  }
}

}  // namespace

struct ThreadPool::State {
  std::atomic<Crew*> crew;
};

int available_cores() {
  int cores = 1;
  for (int size = 1024; size <= 1 << 20; size *= 4) {  // the kernel may know more than 1024 cores
    cpu_set_t* set = CPU_ALLOC(size);
    if (set == nullptr) break;
    const bool known = sched_getaffinity(0, CPU_ALLOC_SIZE(size), set) == 0;
    if (known) cores = CPU_COUNT_S(CPU_ALLOC_SIZE(size), set);
    CPU_FREE(set);
    if (known) break;
  }
  const double quota = std::ceil(cpu_quota());
  return std::max(1, quota < cores ? static_cast<int>(quota) : cores);
}

ThreadPool::ThreadPool(int threads) {
  RAPT_CHECK(threads >= 1, "thread pool: expected at least 1 thread, got {}", threads);
  auto crew = std::make_unique<Crew>(threads);
  crew->start();
  state_ = std::make_unique<State>();
  state_->crew = crew.release();
}

ThreadPool::~ThreadPool() {
  Crew* crew = state_->crew;
  if (crew->lives_here()) {
    delete crew;
  } else {
    abandon(crew);
  }
}

int ThreadPool::threads() const { return state_->crew.load()->threads(); }

void ThreadPool::run(int64_t chunks, const std::function<void(int64_t)>& body) {
  if (chunks == 1) return body(0);
  Crew* crew = state_->crew.load(std::memory_order_acquire);
  if (inside_chunk || crew->threads() == 1) return run_alone(chunks, body);
  if (chunks <= 0) return;
  if (!crew->lives_here()) {
    auto fresh = std::make_unique<Crew>(crew->threads());
    Crew* old = crew;
    if (state_->crew.compare_exchange_strong(old, fresh.get())) {
      abandon(crew);
      crew = fresh.release();
      crew->start();
    } else {
      crew = old;  // another thread of this process was first
    }
  }
  crew->run(chunks, body);
}

void parallel_for(int64_t chunks, const std::function<void(int64_t)>& body) {
  if (inside_chunk) return run_alone(chunks, body);
  Runtime& runtime = Runtime::current();
  runtime.pool().run(chunks, [&](int64_t chunk) {
    const Runtime::Scope scope(runtime);  // workers have entered none of their own
    body(chunk);
  });
}

void parallel_ranges(int64_t count, int64_t grain,
                     const std::function<void(int64_t, int64_t)>& body) {
  RAPT_CHECK(grain > 0, "parallel_ranges: expected a positive grain, got {}", grain);
  if (count <= 0) return;
  parallel_for((count - 1) / grain + 1, [&](int64_t chunk) {
    const int64_t begin = chunk * grain;
    body(begin, begin + std::min(grain, count - begin));
  });
}

}  // namespace rapt
