#include "rapt/base/memory.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <bit>
#include <mutex>

#include "rapt/base/check.h"
#include "rapt/base/heap.h"

#if defined(__SANITIZE_ADDRESS__)
#define RAPT_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RAPT_ASAN 1
#endif
#endif
#ifdef RAPT_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace rapt {
namespace {

constexpr size_t kSmall = size_t{64} << 10;   // below: blocks of the small heap
constexpr size_t kLargest = size_t{1} << 46;  // more than any address space has
constexpr double kMiB = 1 << 20;
constexpr int kScratchSlots = 64;

#ifdef RAPT_ASAN
constexpr size_t kGuard = 64;  // poisoned bytes behind every block
void poison(const void* data, size_t bytes) { __asan_poison_memory_region(data, bytes); }
void unpoison(const void* data, size_t bytes) { __asan_unpoison_memory_region(data, bytes); }
#else
constexpr size_t kGuard = 0;
void poison(const void*, size_t) {}
void unpoison(const void*, size_t) {}
#endif

// The class of `bytes`: 8 sizes to a power of two, and 32 from 1 MiB on, where an eighth is much.
size_t class_size(size_t bytes) {
  if (bytes > kLargest) return bytes;  // refused by take()
  if (bytes <= 512) return std::max<size_t>(64, (bytes + 63) / 64 * 64);
  const size_t step = std::bit_floor(bytes - 1) >> (bytes <= size_t{1} << 20 ? 3 : 5);
  return (bytes + step - 1) & ~(step - 1);  // a power of two
}

class Pool {
 public:
  Block* take(size_t bytes);
  void give_back(Block* block) noexcept;
  void release_unused();

  std::mutex mutex;
  MemoryUse use;
  int64_t limit = 0;

 private:
  Heap& heap_of(size_t size) { return size < kSmall ? small_ : large_; }
  bool map(const Block& block, size_t bytes);
  void back_with_memory(const Block& block, size_t bytes, size_t asked);

  Heap small_{size_t{1} << 30};
  Heap large_{size_t{64} << 30};  // addresses, not memory
};

// Lives until the process ends: handles in globals may give blocks back after every destructor.
Pool& pool() {
  static Pool* const only = [] {
    pthread_atfork([] { pool().mutex.lock(); }, [] { pool().mutex.unlock(); },
                   [] { pool().mutex.unlock(); });
    return new Pool;
  }();
  return *only;
}

void Pool::release_unused() {
  use.mapped -= static_cast<int64_t>(small_.unmap_free() + large_.unmap_free());
}

// Gives memory to what `block` lacks; false if the system has none.
bool Pool::map(const Block& block, size_t bytes) {
  const size_t before = block.region->missing(block.data, bytes);
  const bool done = block.region->map(block.data, bytes);
  use.mapped += static_cast<int64_t>(before - block.region->missing(block.data, bytes));
  return done;
}

void Pool::back_with_memory(const Block& block, size_t bytes, size_t asked) {
  const auto mib = [](auto count) { return static_cast<double>(count) / kMiB; };
  const auto more = [&] { return block.region->missing(block.data, bytes); };
  const auto over_limit = [&] {
    return limit > 0 && more() > 0 && use.mapped + static_cast<int64_t>(more()) > limit;
  };
  if (over_limit()) release_unused();
  if (over_limit()) {
    fail(ErrorKind::memory,
         "memory: a block of {:.1f} MiB needs {:.1f} MiB beside the {:.1f} MiB taken, over the "
         "limit "
         "of {:.1f} MiB (make batches smaller or raise the limit)",
         mib(asked), mib(more()), mib(use.mapped), mib(limit));
  }
  if (map(block, bytes)) return;
  release_unused();
  if (map(block, bytes)) return;
  fail(
      ErrorKind::memory,
      "memory: the system does not give {:.1f} MiB for a block of {:.1f} MiB beside the {:.1f} MiB "
      "taken (make batches smaller)",
      mib(more()), mib(asked), mib(use.mapped));
}

Block* Pool::take(size_t bytes) {
  const size_t size = class_size(bytes + (bytes <= kLargest ? kGuard : 0));
  Heap& heap = heap_of(size);
  Block* block = size <= kLargest ? heap.find(size) : nullptr;
  if (block == nullptr) {
    fail(ErrorKind::memory, "memory: no address space for a block of {:.1f} MiB",
         static_cast<double>(bytes) / kMiB);
  }
  back_with_memory(*block, size, bytes);
  heap.hold(block, size);
  use.in_use += static_cast<int64_t>(size);
  use.peak = std::max(use.peak, use.in_use);
  ++use.allocations;
  poison(block->data, size);
  unpoison(block->data, bytes);
  return block;
}

void Pool::give_back(Block* block) noexcept {
  poison(block->data, block->size);
  use.in_use -= static_cast<int64_t>(block->size);
  heap_of(block->size).give_back(block);
}

// Puts the counts of a shared_ptr into the Block, and gives the block back when they go: a handle
// costs no allocation of its own.
template <class T>
struct ControlAllocator {
  using value_type = T;
  explicit ControlAllocator(Block* of) : block(of) {}
  template <class U>
  explicit ControlAllocator(const ControlAllocator<U>& other) : block(other.block) {}

  T* allocate(size_t) {
    static_assert(sizeof(T) <= sizeof(Block::control) && alignof(T) <= 16);
    return reinterpret_cast<T*>(block->control);
  }
  void deallocate(T*, size_t) noexcept {
    const std::lock_guard lock(pool().mutex);
    pool().give_back(block);
  }

  Block* block;
};

struct KeepData {
  void operator()(void*) const noexcept {}
};

}  // namespace

std::shared_ptr<void> allocate_block(size_t bytes) {
  Block* block = nullptr;
  try {
    const std::lock_guard lock(pool().mutex);
    block = pool().take(bytes);
  } catch (const std::bad_alloc&) {
    fail(ErrorKind::memory, "memory: none left to keep account of a block of {} bytes", bytes);
  }
  return {static_cast<void*>(block->data), KeepData{}, ControlAllocator<std::byte>(block)};
}

MemoryUse memory_use() {
  const std::lock_guard lock(pool().mutex);
  return pool().use;
}

void set_memory_limit(int64_t bytes) {
  RAPT_CHECK(bytes >= 0, "memory: expected a limit of at least 0 bytes (0: none), got {}", bytes);
  const std::lock_guard lock(pool().mutex);
  pool().limit = bytes;
}

int64_t memory_limit() {
  const std::lock_guard lock(pool().mutex);
  return pool().limit;
}

void release_unused_memory() {
  const std::lock_guard lock(pool().mutex);
  pool().release_unused();
}

void* thread_scratch(int slot, size_t bytes) {
  struct Slot {
    std::shared_ptr<void> block;
    size_t size = 0;
  };
  thread_local std::array<Slot, kScratchSlots> slots;
  RAPT_CHECK(slot >= 0 && slot < kScratchSlots,
             "thread_scratch: expected a slot in [0, {}), got {}", kScratchSlots, slot);
  Slot& own = slots[static_cast<size_t>(slot)];
  if (own.block == nullptr || own.size < bytes) {
    const size_t size = class_size(bytes);  // so that slow growth is not a new block each time
    own = {};                               // first: the new block may take its place
    own.block = allocate_block(size);
    own.size = size;
  }
  return own.block.get();
}

}  // namespace rapt
