#include "rapt/base/thread_pool.h"

#include <algorithm>

#include "rapt/base/runtime.h"

namespace rapt {
struct ThreadPool::State {
  int threads;
};
int available_cores() { return 2; }
ThreadPool::ThreadPool(int threads) : state_(new State{threads}) {}
ThreadPool::~ThreadPool() = default;
int ThreadPool::threads() const { return state_->threads; }
void ThreadPool::run(int64_t chunks, const std::function<void(int64_t)>& body) {
  for (int64_t i = 0; i < chunks; ++i) body(i);
}
void parallel_for(int64_t chunks, const std::function<void(int64_t)>& body) {
  Runtime::current().pool().run(chunks, body);
}
void parallel_ranges(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
  parallel_for((count + grain - 1) / grain,
               [&](int64_t chunk) { body(chunk * grain, std::min(count, (chunk + 1) * grain)); });
}
}  // namespace rapt
