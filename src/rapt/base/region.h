// A stretch of reserved addresses, backed with memory in pieces of one huge page.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace rapt {

class Region {
 public:
  static constexpr size_t kPiece = size_t{2} << 20;  // a huge page; regions start on one

  // Reserves `bytes` (a multiple of kPiece) of addresses; null if the system has none left.
  static std::unique_ptr<Region> reserve(size_t bytes);
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  char* data() const { return data_; }
  size_t size() const { return pieces_.size() * kPiece; }

  // Bytes of the pieces under [data, data + bytes) that have no memory.
  size_t missing(const char* data, size_t bytes) const;

  // Gives memory to those pieces; false if the system has none. What was given before is kept.
  bool map(const char* data, size_t bytes);

  // Takes the memory from the pieces that lie wholly within [data, data + bytes); how many bytes.
  size_t unmap(const char* data, size_t bytes);

 private:
  Region(char* data, size_t bytes) : data_(data), pieces_(bytes / kPiece) {}

  char* data_;
  std::vector<bool> pieces_;  // which of them have memory
};

}  // namespace rapt
