#include "rapt/base/heap.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>

#include "rapt/base/random.h"
#include "tests/testing/testing.h"

namespace rapt {
namespace {

constexpr size_t kPiece = Region::kPiece;

Block* take(Heap& heap, size_t bytes) {
  Block* block = heap.find(bytes);
  heap.hold(block, bytes);
  return block;
}

TEST(Region, GivesMemoryByThePiece) {
  const std::unique_ptr<Region> region = Region::reserve(8 * kPiece);
  ASSERT_NE(region, nullptr);
  char* data = region->data();
  EXPECT_EQ(reinterpret_cast<size_t>(data) % kPiece, 0u);
  EXPECT_EQ(region->size(), 8 * kPiece);
  EXPECT_EQ(region->missing(data, 1), kPiece);
  EXPECT_EQ(region->missing(data + kPiece - 1, 2), 2 * kPiece);
  EXPECT_EQ(region->missing(data, 0), 0u);

  ASSERT_TRUE(region->map(data + kPiece - 1, 2));
  data[0] = data[2 * kPiece - 1] = 1;
  EXPECT_EQ(region->missing(data, 8 * kPiece), 6 * kPiece);
  ASSERT_TRUE(region->map(data, 8 * kPiece));
  EXPECT_EQ(data[0], 1);
  data[8 * kPiece - 1] = 1;
  EXPECT_EQ(region->missing(data, 8 * kPiece), 0u);
}

TEST(Region, TakesMemoryFromWholePiecesAlone) {
  const std::unique_ptr<Region> region = Region::reserve(4 * kPiece);
  ASSERT_NE(region, nullptr);
  char* data = region->data();
  ASSERT_TRUE(region->map(data, 4 * kPiece));
  data[0] = data[kPiece] = data[2 * kPiece] = 1;
  EXPECT_EQ(region->unmap(data + 1, kPiece), 0u);
  EXPECT_EQ(region->unmap(data + 1, 2 * kPiece), kPiece);
  EXPECT_EQ(region->unmap(data, 3 * kPiece - 1), kPiece);  // the second is gone already
  EXPECT_EQ(region->missing(data, 4 * kPiece), 2 * kPiece);
  EXPECT_EQ(data[2 * kPiece], 1);
  ASSERT_TRUE(region->map(data, 4 * kPiece));
  EXPECT_EQ(data[0] + data[kPiece], 0);  // fresh
}

TEST(Region, RefusesMoreAddressesThanThereAre) {
  EXPECT_EQ(Region::reserve(size_t{1} << 50), nullptr);
}

TEST(Heap, TakesTheSmallestBlockThatFitsAndOfEqualsTheLowest) {
  Heap heap(8 * kPiece);
  Block* wide = take(heap, 4096);
  Block* wall = take(heap, 64);
  Block* narrow = take(heap, 1024);
  Block* wall2 = take(heap, 64);
  Block* equal = take(heap, 1024);
  Block* wall3 = take(heap, 64);
  char *first = narrow->data, *second = equal->data, *third = wide->data;
  for (Block* block : {equal, narrow, wide}) heap.give_back(block);
  EXPECT_EQ(take(heap, 960)->data, first);
  EXPECT_EQ(take(heap, 1024)->data, second);
  EXPECT_EQ(take(heap, 1024)->data, third);
  EXPECT_EQ(take(heap, 64)->data, first + 960);
  EXPECT_TRUE(wall->held && wall2->held && wall3->held);
}

TEST(Heap, NeighboursThatAreFreeAreOneBlock) {
  for (const std::vector<int>& order :
       {std::vector<int>{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}) {
    Heap heap(kPiece);
    Block* blocks[] = {take(heap, kPiece / 2), take(heap, kPiece / 4), take(heap, kPiece / 4)};
    char* data = blocks[0]->data;
    for (const int index : order) heap.give_back(blocks[index]);
    EXPECT_EQ(heap.find(kPiece)->data, data);
  }
}

// Random taking and giving: blocks never overlap, and at the end all is one block again.
TEST(Heap, BlocksNeverOverlap) {
  Heap heap(64 * kPiece);
  char* start = heap.find(64)->data;
  Rng rng(5);
  std::map<char*, Block*> held;
  for (int round = 0; round < 20'000; ++round) {
    if (held.size() < 200 && rng.below(2) == 0) {
      const size_t bytes = static_cast<size_t>(1 + rng.below(1 << rng.below(12))) * 64;
      Block* block = take(heap, bytes);
      ASSERT_EQ(block->size, bytes);
      const auto after = held.lower_bound(block->data);
      if (after != held.end()) {
        ASSERT_LE(block->data + bytes, after->first);
      }
      if (after != held.begin()) {
        const Block* before = std::prev(after)->second;
        ASSERT_LE(before->data + before->size, block->data);
      }
      held.emplace(block->data, block);
    } else if (!held.empty()) {
      const auto chosen = std::next(held.begin(), rng.below(static_cast<int64_t>(held.size())));
      heap.give_back(chosen->second);
      held.erase(chosen);
    }
  }
  for (const auto& [data, block] : held) heap.give_back(block);
  EXPECT_EQ(heap.find(64 * kPiece)->data, start);
}

TEST(Heap, FreeMemoryDoesNotDependOnTheOrderOfReturns) {
  const auto places = [](bool forwards) {
    Heap heap(64 * kPiece);
    std::vector<Block*> blocks;
    for (size_t i = 0; i < 60; ++i) blocks.push_back(take(heap, 64 * (1 + i * 7 % 13)));
    const char* start = blocks[0]->data;
    for (size_t i = 0; i < 60; ++i) {
      const size_t index = forwards ? i : 59 - i;
      if (index % 3 != 0) heap.give_back(blocks[index]);
    }
    std::vector<ptrdiff_t> result;
    for (size_t i = 0; i < 60; ++i)
      result.push_back(take(heap, 64 * (1 + i * 5 % 11))->data - start);
    return result;
  };
  EXPECT_EQ(places(true), places(false));
}

TEST(Heap, GrowsByAnotherRegion) {
  Heap heap(kPiece);
  Block* a = take(heap, kPiece);
  Block* b = take(heap, kPiece);
  Block* c = take(heap, 3 * kPiece + 64);
  EXPECT_NE(a->region, b->region);
  EXPECT_EQ(c->region->size(), 4 * kPiece);
  EXPECT_EQ(heap.find(size_t{1} << 50), nullptr);
  for (Block* block : {a, b, c}) heap.give_back(block);
}

TEST(Heap, WorksUnderALimitOnAddresses) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers reserve more addresses than the limit";
#endif
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit = {size_t{1} << 30, size_t{1} << 30};
    setrlimit(RLIMIT_AS, &limit);
    Heap heap(size_t{1} << 36);
    Block* block = heap.find(100 << 20);
    _exit(block != nullptr && block->size < size_t{1} << 30 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace rapt
