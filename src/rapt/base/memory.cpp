#include "rapt/base/memory.h"

#include <cstdlib>
#include <vector>

namespace rapt {
std::shared_ptr<void> allocate_block(size_t bytes) {
  return {std::aligned_alloc(64, (bytes + 64) / 64 * 64), std::free};
}
MemoryUse memory_use() { return {}; }
void set_memory_limit(int64_t) {}
void release_unused_memory() {}
void* thread_scratch(int slot, size_t bytes) {
  thread_local std::vector<std::shared_ptr<void>> blocks(64);
  blocks.at(static_cast<size_t>(slot)) = allocate_block(bytes);
  return blocks[static_cast<size_t>(slot)].get();
}
}  // namespace rapt
