// Checksums of files and tensors: XXH64 (Collet 2012), which the program xxhsum computes, too. They
// find damage, not forgery.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace rapt {

// Takes bytes in any pieces.
class Checksum {
 public:
  void add(std::span<const std::byte> bytes);
  uint64_t value() const;    // of all bytes so far
  std::string text() const;  // the same as 16 hexadecimal digits

 private:
  void take_block(const std::byte* block);

  std::array<uint64_t, 4> lanes_ = {0x60ea27eeadc0b5d6, 0xc2b2ae3d27d4eb4f, 0,
                                    0x61c8864e7a143579};  // of seed 0
  std::array<std::byte, 32> rest_{};                      // what does not fill a block yet
  uint64_t length_ = 0;
};

// Of a whole file. Throws Error as read_file does; memory does not grow with the file.
std::string file_checksum(const std::filesystem::path& path);

}  // namespace rapt
