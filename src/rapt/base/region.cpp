#include "rapt/base/region.h"

#include <sys/mman.h>

namespace rapt {
namespace {

constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

// Pieces that `bytes` from the region's start touch.
size_t pieces_of(size_t bytes) { return (bytes + Region::kPiece - 1) / Region::kPiece; }

}  // namespace

std::unique_ptr<Region> Region::reserve(size_t bytes) {
  void* wide = mmap(nullptr, bytes + kPiece, PROT_NONE, kFlags, -1, 0);
  if (wide == MAP_FAILED) return nullptr;
  const size_t before = (kPiece - reinterpret_cast<size_t>(wide) % kPiece) % kPiece;
  char* data = static_cast<char*>(wide) + before;
  if (before > 0) munmap(wide, before);
  munmap(data + bytes, kPiece - before);
  return std::unique_ptr<Region>(new Region(data, bytes));
}

Region::~Region() { munmap(data_, size()); }

size_t Region::missing(const char* data, size_t bytes) const {
  const size_t offset = static_cast<size_t>(data - data_), end = pieces_of(offset + bytes);
  size_t count = 0;
  for (size_t piece = offset / kPiece; piece < end; ++piece) count += !pieces_[piece];
  return count * kPiece;
}

bool Region::map(const char* data, size_t bytes) {
  const size_t offset = static_cast<size_t>(data - data_), end = pieces_of(offset + bytes);
  for (size_t first = offset / kPiece; first < end; ++first) {
    if (pieces_[first]) continue;
    size_t last = first;
    while (last < end && !pieces_[last]) ++last;
    char* start = data_ + first * kPiece;
    if (mprotect(start, (last - first) * kPiece, PROT_READ | PROT_WRITE) != 0) return false;
    madvise(start, (last - first) * kPiece, MADV_HUGEPAGE);  // a kernel without them does as well
    for (; first < last; ++first) pieces_[first] = true;
  }
  return true;
}

size_t Region::unmap(const char* data, size_t bytes) {
  const size_t offset = static_cast<size_t>(data - data_), end = (offset + bytes) / kPiece;
  size_t count = 0;
  for (size_t first = pieces_of(offset); first < end; ++first) {
    if (!pieces_[first]) continue;
    size_t last = first;
    while (last < end && pieces_[last]) ++last;
    const size_t length = (last - first) * kPiece;
    if (mmap(data_ + first * kPiece, length, PROT_NONE, kFlags | MAP_FIXED, -1, 0) != MAP_FAILED) {
      count += last - first;
      for (size_t piece = first; piece < last; ++piece) pieces_[piece] = false;
    }
    first = last;
  }
  return count * kPiece;
}

}  // namespace rapt
