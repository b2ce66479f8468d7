#include "rapt/base/heap.h"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

namespace rapt {
namespace {

// Addresses that may be reserved at once: a limit on them (ulimit -v) also has to serve the rest of
// the program.
size_t reserve_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return SIZE_MAX;
  return limit.rlim_cur / 4;
}

}  // namespace

bool BySizeThenAddress::operator()(const Block* a, const Block* b) const {
  return a->size != b->size ? a->size < b->size : a->data < b->data;
}

bool BySizeThenAddress::operator()(const Block* a, size_t size) const { return a->size < size; }

Block::Block(Region* in, char* at, size_t bytes) : region(in), data(at), size(bytes) {
  FreeBlocks alone;
  node = alone.extract(alone.insert(this).first);
}

Heap::~Heap() {
  for (Block* block : first_) {
    while (block != nullptr) delete std::exchange(block, block->next);
  }
}

bool Heap::add_region(size_t bytes) {
  const size_t needed = (bytes + Region::kPiece - 1) / Region::kPiece * Region::kPiece;
  size_t size = std::max(needed, reserve_);
  while (size > needed && size > reserve_limit()) size /= 2;
  std::unique_ptr<Region> region;
  for (;; size /= 2) {
    size = std::max(needed, size / Region::kPiece * Region::kPiece);
    region = Region::reserve(size);
    if (region != nullptr) break;
    if (size == needed) return false;
  }
  auto block = std::make_unique<Block>(region.get(), region->data(), region->size());
  first_.reserve(first_.size() + 1);
  regions_.push_back(std::move(region));
  first_.push_back(block.get());
  free_.insert(std::move(block->node));
  block.release();
  return true;
}

Block* Heap::find(size_t bytes) {
  auto best = free_.lower_bound(bytes);
  if (best == free_.end()) {
    if (!add_region(bytes)) return nullptr;
    best = free_.lower_bound(bytes);
  }
  return *best;
}

void Heap::hold(Block* block, size_t bytes) {
  std::unique_ptr<Block> rest;
  if (block->size > bytes) {
    rest = std::make_unique<Block>(block->region, block->data + bytes, block->size - bytes);
  }
  block->node = free_.extract(block);
  block->held = true;
  if (rest == nullptr) return;
  block->size = bytes;
  rest->previous = block;
  rest->next = block->next;
  if (rest->next != nullptr) rest->next->previous = rest.get();
  block->next = rest.get();
  free_.insert(std::move(rest->node));
  rest.release();
}

void Heap::give_back(Block* block) noexcept {
  block->held = false;
  const auto swallow_next = [](Block* first) {
    Block* second = first->next;
    first->size += second->size;
    first->next = second->next;
    if (first->next != nullptr) first->next->previous = first;
    delete second;
  };
  if (block->next != nullptr && !block->next->held) {
    free_.extract(block->next);
    swallow_next(block);
  }
  if (block->previous != nullptr && !block->previous->held) {
    block = block->previous;
    block->node = free_.extract(block);
    swallow_next(block);
  }
  free_.insert(std::move(block->node));
}

size_t Heap::unmap_free() {
  size_t bytes = 0;
  for (const Block* block : free_) bytes += block->region->unmap(block->data, block->size);
  return bytes;
}

}  // namespace rapt
