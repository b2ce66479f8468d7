#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "rapt/base/memory.h"
#include "rapt/base/random.h"
#include "tests/testing/testing.h"

namespace rapt {
namespace {

// Threads that take blocks, write them, and hand them to each other to be given back.
TEST(Memory, BlocksGoFromThreadToThread) {
  const int64_t before = memory_use().in_use;
  std::mutex mutex;
  std::vector<std::shared_ptr<void>> shared;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      Rng rng(7, static_cast<uint64_t>(thread));
      for (int round = 0; round < 500; ++round) {
        const size_t size = static_cast<size_t>(8 + rng.below(1 << rng.below(18)));
        std::shared_ptr<void> block = allocate_block(size);
        std::memset(block.get(), thread, size);
        wrong += static_cast<char*>(block.get())[size - 1] != thread;
        const std::lock_guard lock(mutex);
        if (shared.size() < 50) {
          shared.push_back(std::move(block));
        } else {
          std::swap(shared[static_cast<size_t>(rng.below(50))], block);
        }
      }
      thread_scratch(1, 1000);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  shared.clear();
  EXPECT_EQ(memory_use().in_use, before);
}

}  // namespace
}  // namespace rapt
