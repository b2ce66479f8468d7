#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "rapt/base/error.h"
#include "rapt/base/runtime.h"
#include "rapt/base/thread_pool.h"
#include "tests/testing/testing.h"

namespace rapt {
namespace {

using testing::error_of;

// How often each chunk ran.
std::vector<int> counts_of(ThreadPool& pool, int64_t chunks) {
  std::vector<std::atomic<int>> counts(static_cast<size_t>(chunks));
  pool.run(chunks, [&](int64_t chunk) { ++counts[static_cast<size_t>(chunk)]; });
  return {counts.begin(), counts.end()};
}

TEST(ThreadPool, RunsEveryChunkOnce) {
  for (const int threads : {1, 2, 3, 4, 8, 16}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const int64_t chunks : {0, 1, 2, 3, 7, 16, 17, 64, 1000}) {
      EXPECT_EQ(counts_of(pool, chunks), std::vector<int>(static_cast<size_t>(chunks), 1));
    }
  }
}

TEST(ThreadPool, ShowsWhatChunksWroteToTheCaller) {
  ThreadPool pool(4);
  std::vector<int64_t> values(257);
  for (int64_t round = 1; round <= 200; ++round) {  // no lock: TSan checks the hand-over both ways
    pool.run(257, [&](int64_t chunk) { values[static_cast<size_t>(chunk)] += chunk * round; });
  }
  for (int64_t i = 0; i < 257; ++i) EXPECT_EQ(values[static_cast<size_t>(i)], i * 100 * 201);
}

TEST(ThreadPool, SharesTheChunksAmongThreads) {
  ThreadPool pool(2);
  std::atomic<int> arrived{0};
  // Each of the two chunks waits for the other: one thread alone would never come back.
  pool.run(2, [&](int64_t) {
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
  });
  EXPECT_EQ(arrived, 2);
}

TEST(ThreadPool, WakesWorkersThatSleep) {
  ThreadPool pool(2);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // far longer than workers spin
    std::atomic<int> arrived{0};
    pool.run(2, [&](int64_t) {
      ++arrived;
      while (arrived < 2) std::this_thread::yield();
    });
    EXPECT_EQ(arrived, 2);
  }
}

TEST(ThreadPool, WaitsAsleepForAWorkerThatIsSlow) {
  ThreadPool pool(2);
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> arrived{0};
  std::atomic<bool> slow_done{false};
  pool.run(2, [&](int64_t) {
    ++arrived;
    while (arrived < 2) std::this_thread::yield();  // so that each thread has one chunk
    if (std::this_thread::get_id() == caller) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    slow_done = true;
  });
  EXPECT_TRUE(slow_done);
}

TEST(ThreadPool, ServesManyCallersAtOnce) {
  ThreadPool pool(3);
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int caller = 0; caller < 24; ++caller) {  // more than the pool serves at once
    callers.emplace_back([&, caller] {
      for (int64_t round = 0; round < 50; ++round) {
        const int64_t chunks = 1 + (caller * 7 + round) % 40;
        std::vector<int64_t> values(static_cast<size_t>(chunks));
        pool.run(chunks,
                 [&](int64_t chunk) { values[static_cast<size_t>(chunk)] = chunk + round; });
        for (int64_t i = 0; i < chunks; ++i) wrong += values[static_cast<size_t>(i)] != i + round;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ThreadPool, RunsANestedCallOnTheThreadOfItsChunk) {
  ThreadPool pool(4), other(3);
  std::atomic<int> strangers{0}, calls{0};
  pool.run(8, [&](int64_t) {
    const std::thread::id self = std::this_thread::get_id();
    const auto body = [&](int64_t) {
      ++calls;
      strangers += std::this_thread::get_id() != self;
    };
    pool.run(5, body);
    other.run(5, body);
    parallel_for(5, body);
  });
  EXPECT_EQ(calls, 8 * 15);
  EXPECT_EQ(strangers, 0);
}

TEST(ThreadPool, SharesOutTheCallsOfAnOnlyChunk) {
  ThreadPool pool(2);
  std::atomic<int> arrived{0};
  pool.run(1, [&](int64_t) {
    pool.run(2, [&](int64_t) {
      ++arrived;
      while (arrived < 2) std::this_thread::yield();
    });
  });
  EXPECT_EQ(arrived, 2);
}

TEST(ThreadPool, R42_TheExceptionOfTheLeastChunkReachesTheCaller) {
  for (const int threads : {1, 2, 4, 7}) {
    ThreadPool pool(threads);
    for (int64_t first = 0; first < 40; first += 3) {
      std::atomic<int64_t> begun{0};
      const std::string message = error_of([&] {
        pool.run(40, [&](int64_t chunk) {
          ++begun;
          if (chunk >= first) throw Error("chunk " + std::to_string(chunk));
        });
      });
      EXPECT_EQ(message, "chunk " + std::to_string(first));
      EXPECT_LE(begun, first + threads);  // nothing begins after the first failure was seen
    }
    EXPECT_EQ(counts_of(pool, 100), std::vector<int>(100, 1));  // the pool works on
  }
}

TEST(ThreadPool, R42_AnExceptionOfAWorkerAloneReachesTheCaller) {
  ThreadPool pool(2);
  const std::thread::id caller = std::this_thread::get_id();
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> arrived{0};
    EXPECT_THROW(pool.run(2,
                          [&](int64_t) {
                            ++arrived;
                            while (arrived < 2) std::this_thread::yield();
                            if (std::this_thread::get_id() != caller) throw std::bad_alloc();
                          }),
                 std::bad_alloc);
  }
}

TEST(ThreadPool, R42_CallersGetTheirOwnExceptions) {
  ThreadPool pool(3);
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int caller = 0; caller < 6; ++caller) {
    callers.emplace_back([&, caller] {
      for (int round = 0; round < 50; ++round) {
        try {
          pool.run(9, [&](int64_t chunk) {
            if (caller % 2 == 1 && chunk == caller) throw caller;
          });
          wrong += caller % 2;
        } catch (int thrown) {
          wrong += thrown != caller;
        }
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ParallelFor, ChunksSeeTheRuntimeOfTheirCaller) {
  Runtime runtime({.threads = 3});
  const Runtime::Scope scope(runtime);
  std::atomic<int> strangers{0};
  parallel_for(100, [&](int64_t) { strangers += &Runtime::current() != &runtime; });
  EXPECT_EQ(strangers, 0);
}

TEST(ParallelRanges, R43_CutsDependOnCountAndGrainAlone) {
  using Cuts = std::set<std::pair<int64_t, int64_t>>;
  for (const int threads : {1, 2, 3, 4, 7, 8, 16}) {
    Runtime runtime({.threads = threads});
    const Runtime::Scope scope(runtime);
    std::vector<std::pair<int64_t, int64_t>> cuts(4);
    parallel_ranges(10, 3, [&](int64_t begin, int64_t end) {
      cuts[static_cast<size_t>(begin / 3)] = {begin, end};
    });
    EXPECT_EQ(Cuts(cuts.begin(), cuts.end()), (Cuts{{0, 3}, {3, 6}, {6, 9}, {9, 10}}));
  }
}

// Partial sums by range, added in order: the same bits however many threads made them.
TEST(ParallelRanges, R43_SumsAreTheSameBitsForAnyNumberOfThreads) {
  std::vector<float> values(100'003);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 1.0f / static_cast<float>(i + 1);
  std::set<float> sums;
  for (const int threads : {1, 2, 3, 4, 7, 8, 16}) {
    Runtime runtime({.threads = threads});
    const Runtime::Scope scope(runtime);
    for (int round = 0; round < 5; ++round) {
      std::vector<float> parts(values.size() / 1000 + 1);
      parallel_ranges(static_cast<int64_t>(values.size()), 1000, [&](int64_t begin, int64_t end) {
        float sum = 0;
        for (int64_t i = begin; i < end; ++i) sum += values[static_cast<size_t>(i)];
        parts[static_cast<size_t>(begin / 1000)] = sum;
      });
      float total = 0;
      for (const float part : parts) total += part;
      sums.insert(total);
    }
  }
  EXPECT_EQ(sums.size(), 1u);
}

TEST(ParallelRanges, TakesEveryCountUpToTheLargest) {
  std::atomic<int> calls{0};
  const auto count = [&](int64_t, int64_t) { ++calls; };
  parallel_ranges(0, 4, count);
  parallel_ranges(-3, 4, count);
  EXPECT_EQ(calls, 0);
  parallel_ranges(INT64_MAX, INT64_MAX / 2, [&](int64_t begin, int64_t end) {
    EXPECT_LT(begin, end);
    ++calls;
  });
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(error_of([&] { parallel_ranges(4, 0, count); }),
            "parallel_ranges: expected a positive grain, got 0");
}

}  // namespace
}  // namespace rapt
