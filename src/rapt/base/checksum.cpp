#include "rapt/base/checksum.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "rapt/base/file.h"

namespace rapt {
namespace {

constexpr uint64_t kPrime1 = 0x9e3779b185ebca87, kPrime2 = 0xc2b2ae3d27d4eb4f,
                   kPrime3 = 0x165667b19e3779f9, kPrime4 = 0x85ebca77c2b2ae63,
                   kPrime5 = 0x27d4eb2f165667c5;
constexpr size_t kBlock = 32;

template <class Word>
uint64_t word_at(const std::byte* bytes) {
  Word word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

uint64_t round(uint64_t lane, uint64_t word) {
  return std::rotl(lane + word * kPrime2, 31) * kPrime1;
}

}  // namespace

void Checksum::take_block(const std::byte* block) {
  for (size_t i = 0; i < lanes_.size(); ++i)
    lanes_[i] = round(lanes_[i], word_at<uint64_t>(block + 8 * i));
}

void Checksum::add(std::span<const std::byte> bytes) {
  const size_t held = length_ % kBlock;
  length_ += bytes.size();
  if (held > 0) {
    const size_t taken = std::min(kBlock - held, bytes.size());
    std::copy_n(bytes.begin(), taken, rest_.begin() + static_cast<std::ptrdiff_t>(held));
    bytes = bytes.subspan(taken);
    if (held + taken < kBlock) return;
    take_block(rest_.data());
  }
  for (; bytes.size() >= kBlock; bytes = bytes.subspan(kBlock)) take_block(bytes.data());
  std::copy(bytes.begin(), bytes.end(), rest_.begin());
}

uint64_t Checksum::value() const {
  uint64_t hash = kPrime5;
  if (length_ >= kBlock) {
    hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) +
           std::rotl(lanes_[3], 18);
    for (const uint64_t lane : lanes_) hash = (hash ^ round(0, lane)) * kPrime1 + kPrime4;
  }
  hash += length_;
  const std::byte* next = rest_.data();
  size_t left = length_ % kBlock;
  for (; left >= 8; left -= 8, next += 8)
    hash = std::rotl(hash ^ round(0, word_at<uint64_t>(next)), 27) * kPrime1 + kPrime4;
  for (; left >= 4; left -= 4, next += 4)
    hash = std::rotl(hash ^ word_at<uint32_t>(next) * kPrime1, 23) * kPrime2 + kPrime3;
  for (; left > 0; --left, ++next)
    hash = std::rotl(hash ^ static_cast<uint64_t>(*next) * kPrime5, 11) * kPrime1;
  hash = (hash ^ hash >> 33) * kPrime2;
  hash = (hash ^ hash >> 29) * kPrime3;
  return hash ^ hash >> 32;
}

std::string Checksum::text() const { return fmt::format("{:016x}", value()); }

std::string file_checksum(const std::filesystem::path& path) {
  constexpr size_t kPiece = size_t{1} << 22;
  const MappedFile file(path);
  Checksum sum;
  const auto bytes = file.bytes();
  for (size_t begin = 0; begin < bytes.size(); begin += kPiece) {
    const size_t end = std::min(bytes.size(), begin + kPiece);
    sum.add(bytes.subspan(begin, end - begin));
    file.release(end);
  }
  return sum.text();
}

}  // namespace rapt
