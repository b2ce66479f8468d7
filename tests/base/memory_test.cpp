#include "rapt/base/memory.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <set>
#include <thread>
#include <vector>

#include "rapt/base/random.h"
#include "tests/testing/testing.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
constexpr bool kSanitized = true;  // its own shadow memory faults, too
#else
constexpr bool kSanitized = false;
#endif

namespace rapt {
namespace {

using testing::error_of;

constexpr size_t kKiB = 1024, kMiB = kKiB * kKiB;

// A block that is held until the very end, after the destructors of this program's globals.
std::shared_ptr<void> global_block = allocate_block(100);

// Restores "no limit".
struct LimitScope {
  explicit LimitScope(int64_t bytes) { set_memory_limit(bytes); }
  ~LimitScope() { set_memory_limit(0); }
};

int64_t minor_faults() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_minflt;
}

int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

TEST(Memory, BlocksAreAlignedAndWholeInEverySize) {
  std::vector<std::pair<std::shared_ptr<void>, size_t>> blocks;
  int value = 0;
  for (size_t size = 0; size <= 3 * kMiB; size = size * 9 / 8 + 1) {
    auto block = allocate_block(size);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<size_t>(block.get()) % 64, 0u);
    std::memset(block.get(), ++value % 251, size);
    blocks.emplace_back(std::move(block), size);
  }
  value = 0;
  for (const auto& [block, size] : blocks) {
    const auto* bytes = static_cast<const unsigned char*>(block.get());
    const int expected = ++value % 251;
    for (size_t i = 0; i < size; ++i) ASSERT_EQ(bytes[i], expected) << size;
  }
}

TEST(Memory, ABlockThatComesBackServesTheNextRequest) {
  for (const size_t size : {100 * 1, 5000, 100'000, 5'000'000, 70'000'000}) {
    void* first = allocate_block(size).get();  // given back at once
    const MemoryUse before = memory_use();
    for (int i = 0; i < 10; ++i) EXPECT_EQ(allocate_block(size).get(), first);
    EXPECT_EQ(allocate_block(size - size / 40).get(), first);
    EXPECT_EQ(memory_use().mapped, before.mapped);
    EXPECT_EQ(memory_use().allocations, before.allocations + 11);
  }
}

TEST(Memory, CountsWhatIsHeld) {
  const MemoryUse before = memory_use();
  auto block = allocate_block(1000);
  const int64_t size = memory_use().in_use - before.in_use;
  EXPECT_GE(size, 1000);
  EXPECT_LE(size, 1000 + 125 + 64 + 128);
  auto copy = block;
  block.reset();
  EXPECT_EQ(memory_use().in_use, before.in_use + size);
  copy.reset();
  EXPECT_EQ(memory_use().in_use, before.in_use);
  const auto large = allocate_block(200 * kMiB);  // never touched
  EXPECT_GE(memory_use().peak, before.in_use + static_cast<int64_t>(200 * kMiB));
}

TEST(Memory, AWeakHandleKeepsTheBlock) {
  const int64_t before = memory_use().in_use;
  std::weak_ptr<void> weak = allocate_block(1000);
  EXPECT_TRUE(weak.expired());
  EXPECT_GT(memory_use().in_use, before);
  weak.reset();
  EXPECT_EQ(memory_use().in_use, before);
}

TEST(Memory, SmallBlocksLieCloseTogether) {
  const int64_t before = memory_use().mapped;
  std::vector<std::shared_ptr<void>> blocks;
  for (int i = 0; i < 1000; ++i) blocks.push_back(allocate_block(kKiB));
  EXPECT_LE(memory_use().mapped - before, static_cast<int64_t>(2 * kMiB));
}

TEST(Memory, LargeBlocksWasteLittle) {
  release_unused_memory();
  const MemoryUse before = memory_use();
  const auto a = allocate_block(33 * kMiB), b = allocate_block(71 * kMiB + 1);
  EXPECT_LE(memory_use().in_use - before.in_use, static_cast<int64_t>(104 * kMiB * 33 / 32));
  EXPECT_LE(memory_use().mapped - before.mapped,
            static_cast<int64_t>(104 * kMiB * 33 / 32 + 4 * kMiB));
}

// Half of the memory as many blocks, then the same memory as few: a class that is not asked for any
// more keeps nothing for itself.
TEST(Memory, FreeNeighboursServeALargerBlock) {
  release_unused_memory();
  std::vector<std::shared_ptr<void>> blocks;
  for (int i = 0; i < 64; ++i) blocks.push_back(allocate_block(kMiB));
  const int64_t mapped = memory_use().mapped;
  blocks.clear();
  const auto large = allocate_block(60 * kMiB);
  EXPECT_EQ(memory_use().mapped, mapped);
}

TEST(Memory, ALimitIsAnErrorAndLeavesTheRestAlone) {
  release_unused_memory();
  const MemoryUse before = memory_use();
  const LimitScope limit(before.mapped + static_cast<int64_t>(20 * kMiB));
  auto fits = allocate_block(10 * kMiB);
  try {
    allocate_block(40 * kMiB);
    FAIL() << "over the limit";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::memory);
    EXPECT_NE(std::string(error.what()).find("a block of 40.0 MiB needs"), std::string::npos);
  }
  EXPECT_LE(memory_use().mapped, before.mapped + static_cast<int64_t>(20 * kMiB));
  EXPECT_GE(memory_use().in_use, before.in_use + static_cast<int64_t>(10 * kMiB));
  fits.reset();
  allocate_block(15 * kMiB);
}

// Free pieces that lie elsewhere are returned before the limit is an error.
TEST(Memory, ALimitCountsNoMemoryThatCouldBeReturned) {
  release_unused_memory();
  const LimitScope limit(memory_use().mapped + static_cast<int64_t>(20 * kMiB));
  auto low = allocate_block(8 * kMiB);
  auto high = allocate_block(kMiB);
  low.reset();
  EXPECT_NE(allocate_block(15 * kMiB), nullptr);  // beside the 8 MiB: 24 MiB
}

TEST(Memory, RefusesWhatNoMachineHas) {
  for (const size_t size : {SIZE_MAX, SIZE_MAX - 64, size_t{1} << 62, size_t{1} << 48}) {
    try {
      allocate_block(size);
      FAIL() << size;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::memory);
    }
  }
  EXPECT_EQ(error_of([] { set_memory_limit(-1); }),
            "memory: expected a limit of at least 0 bytes (0: none), got -1");
}

TEST(Memory, ReleaseReturnsWhatNobodyHolds) {
  auto held = allocate_block(3 * kMiB);
  std::memset(held.get(), 7, 3 * kMiB);
  {
    auto free = allocate_block(50 * kMiB);
    std::memset(free.get(), 1, 50 * kMiB);
  }
  const int64_t mapped = memory_use().mapped, resident = resident_bytes();
  release_unused_memory();
  EXPECT_LE(memory_use().mapped, mapped - static_cast<int64_t>(46 * kMiB));
  EXPECT_LE(resident_bytes(), resident - static_cast<int64_t>(40 * kMiB));
  EXPECT_EQ(static_cast<char*>(held.get())[3 * kMiB - 1], 7);
  std::memset(allocate_block(50 * kMiB).get(), 1, 50 * kMiB);  // and it comes again
}

// The blocks of a training step: what is made forward is given back in the opposite order, beside
// others that come and go; a few stay. Sizes differ by batch.
void step(std::vector<std::shared_ptr<void>>& kept, size_t tokens) {
  Rng rng(11);
  const auto make = [](size_t size) {
    auto block = allocate_block(size);
    std::memset(block.get(), 1, size);
    return block;
  };
  std::vector<std::shared_ptr<void>> saved;
  for (int layer = 0; layer < 12; ++layer) {
    auto wide = make(tokens * 4096);
    saved.push_back(make(tokens * 1024));
    saved.push_back(make(static_cast<size_t>(1 + rng.below(4000))));
  }
  while (!saved.empty()) {
    auto gradient = make(tokens * 1024), scratch = make(tokens * 3072);
    if (kept.size() < 12) kept.push_back(make(kMiB));
    saved.pop_back();
  }
}

TEST(Memory, AStepThatRepeatsItselfMapsAndTouchesNothingNew) {
  std::vector<std::shared_ptr<void>> kept;
  for (int i = 0; i < 3; ++i) step(kept, 700);
  const MemoryUse before = memory_use();
  const int64_t faults = minor_faults();
  for (int i = 0; i < 10; ++i) step(kept, 700);
  EXPECT_EQ(memory_use().mapped, before.mapped);
  EXPECT_LE(minor_faults() - faults, kSanitized ? INT64_MAX : 8);
  for (size_t i = 0; i < 20; ++i) step(kept, 600 + i * 37 % 100);  // smaller batches fit in, too
  EXPECT_LE(memory_use().mapped, before.mapped + before.mapped / 16);
}

TEST(Memory, ScratchKeepsItsLargestSize) {
  void* first = thread_scratch(3, 100'000);
  EXPECT_EQ(reinterpret_cast<size_t>(first) % 64, 0u);
  std::memset(first, 1, 100'000);
  const int64_t allocations = memory_use().allocations;
  EXPECT_EQ(thread_scratch(3, 0), first);
  EXPECT_EQ(thread_scratch(3, 100'000), first);
  EXPECT_EQ(memory_use().allocations, allocations);
  std::memset(thread_scratch(3, 3'000'000), 1, 3'000'000);
  EXPECT_NE(thread_scratch(4, 64), thread_scratch(3, 64));
  EXPECT_EQ(error_of([] { thread_scratch(64, 1); }),
            "thread_scratch: expected a slot in [0, 64), got 64");
  EXPECT_EQ(error_of([] { thread_scratch(-1, 1); }),
            "thread_scratch: expected a slot in [0, 64), got -1");
}

TEST(Memory, ScratchBelongsToAThreadAndEndsWithIt) {
  void* own = thread_scratch(5, 1000);
  const int64_t before = memory_use().in_use;
  std::thread([own] {
    EXPECT_NE(thread_scratch(5, 1000), own);
    EXPECT_NE(thread_scratch(6, 10 * kMiB), nullptr);
  }).join();
  EXPECT_EQ(memory_use().in_use, before);
}

TEST(Memory, AForkedChildAllocatesThoughAnotherThreadDid) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer's allocator is not safe in a child of many threads";
#endif
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) allocate_block(1000);
  });
  for (int round = 0; round < 20; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      for (int i = 0; i < 100; ++i) std::memset(allocate_block(2000).get(), 1, 2000);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  stop = true;
  other.join();
}

#if defined(__SANITIZE_ADDRESS__)
TEST(Memory, FreeBlocksArePoisoned) {
  for (const size_t size : {100, 128, 5'000'000}) {
    auto block = allocate_block(size);
    auto* bytes = static_cast<char*>(block.get());
    EXPECT_EQ(__asan_region_is_poisoned(bytes, size), nullptr);
    EXPECT_TRUE(__asan_address_is_poisoned(bytes + size));
    block.reset();
    EXPECT_TRUE(__asan_address_is_poisoned(bytes));
    EXPECT_TRUE(__asan_address_is_poisoned(bytes + size / 2));
  }
}
#endif

}  // namespace
}  // namespace rapt
