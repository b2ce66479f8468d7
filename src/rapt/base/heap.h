// Cuts regions into blocks: best fit, the lowest address among equals, and neighbours that are free
// are one block at once. So the free memory depends on which blocks are held, not on the order in
// which others came back, and a step that repeats itself finds its blocks where it left them.
//
// What describes a block lies outside of it: no page is touched here. Not safe for threads.
#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <vector>

#include "rapt/base/region.h"

namespace rapt {

struct Block;

struct BySizeThenAddress {
  using is_transparent = void;
  bool operator()(const Block* a, const Block* b) const;
  bool operator()(const Block* a, size_t size) const;
};
using FreeBlocks = std::set<Block*, BySizeThenAddress>;

struct Block {
  Block(Region* in, char* at, size_t bytes);

  Region* region;
  char* data;
  size_t size;                // a multiple of 64
  Block* previous = nullptr;  // neighbours in the region
  Block* next = nullptr;
  FreeBlocks::node_type node;  // its place among the free ones, kept here while the block is held
  bool held = false;
  alignas(16) std::byte control[48];  // room for the counts of a shared_ptr
};

class Heap {
 public:
  // `reserve`: the addresses to reserve at once; a multiple of Region::kPiece.
  explicit Heap(size_t reserve) : reserve_(reserve) {}
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  // The free block that serves `bytes` (a multiple of 64) best; null if the system has no addresses
  // left. Its pages may lack memory. It stays free until hold().
  Block* find(size_t bytes);

  // Cuts `block` to `bytes` and marks it held.
  void hold(Block* block, size_t bytes);

  // Gives a held block back. Never fails.
  void give_back(Block* block) noexcept;

  // Takes the memory of free blocks from their regions; how many bytes.
  size_t unmap_free();

 private:
  bool add_region(size_t bytes);

  size_t reserve_;
  std::vector<std::unique_ptr<Region>> regions_;
  std::vector<Block*> first_;  // of each region
  FreeBlocks free_;
};

}  // namespace rapt
