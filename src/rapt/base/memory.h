// Blocks of memory that are kept and used again.
//
// Sizes are rounded up to classes (eight to each power of two), so that a block that comes back
// serves the next request of about its size; blocks are aligned to 64 bytes and large ones come
// from huge pages. After the first steps of a training run nothing is mapped any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace rapt {

// Shared ownership of a block of at least one byte, not cleared: the last handle (weak ones count)
// gives it back. Throws Error (kind memory) when there is no memory, or when it would pass the
// limit.
std::shared_ptr<void> allocate_block(size_t bytes);

struct MemoryUse {
  int64_t mapped = 0;  // bytes taken from the system, used or kept
  int64_t in_use = 0;  // bytes in blocks that are held
  int64_t peak = 0;    // the largest in_use so far
  int64_t allocations = 0;
};
MemoryUse memory_use();

// An upper bound for `mapped`; 0 removes it. What is mapped already stays.
void set_memory_limit(int64_t bytes);
int64_t memory_limit();

// Returns to the system what no handle holds, in whole pieces of 2 MiB.
void release_unused_memory();

// Per-thread scratch that keeps its largest size: at least `bytes`, aligned to 64. The contents and
// the pointer last until the same thread asks again with the same slot, of which there are 64.
// Throws Error for another slot, and as allocate_block does.
void* thread_scratch(int slot, size_t bytes);

}  // namespace rapt
