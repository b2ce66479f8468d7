// A pool of threads that share the chunks of one loop.
//
// Chunks are handed out one at a time, so that a thread beside a busy neighbour takes fewer. What a
// chunk computes must not depend on which thread runs it: results are then the same bits for any
// number of threads. Waiting threads spin for a short while and then sleep.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace rapt {

// The cores that this process may use: its affinity, cut by the CPU quota of its control group.
int available_cores();

class ThreadPool {
 public:
  // `threads` counts the caller: 1 makes a pool without workers. Throws Error if threads < 1.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  // Calls body(chunk) for every chunk in [0, chunks), each once, on the calling thread and the
  // workers, and returns when all are done. Chunks begin in order. When some throw, the exception
  // of the least index is thrown here after all that had begun have ended; the rest is left out. So
  // the exception, too, is the same for any number of threads.
  //
  // Any number of threads may call at once. A call from within a chunk runs there, alone, unless
  // the chunk is the only one. In a child made by fork() the pool starts new workers at its first
  // use; a child that is forked within a chunk must not return from it.
  void run(int64_t chunks, const std::function<void(int64_t chunk)>& body);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Runs body(chunk) for [0, chunks) on the pool of the current Runtime, which is the current one in
// every chunk, too.
void parallel_for(int64_t chunks, const std::function<void(int64_t chunk)>& body);

// Cuts [0, count) into pieces of `grain` (the last may be shorter) and runs body(begin, end) for
// each. The cuts depend on count and grain alone.
void parallel_ranges(int64_t count, int64_t grain,
                     const std::function<void(int64_t begin, int64_t end)>& body);

}  // namespace rapt
