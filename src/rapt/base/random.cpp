#include "rapt/base/random.h"

#include <cmath>
#include <numbers>

#include "rapt/base/check.h"

namespace rapt {

PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key = {key[0] + 0x9E3779B9u, key[1] + 0xBB67AE85u};
  }
  return counter;
}

uint64_t mix_bits(uint64_t value) {
  value += 0x9E3779B97F4A7C15u;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

uint64_t hash_text(std::string_view text, uint64_t seed) {
  uint64_t hash = 0xCBF29CE484222325u ^ seed;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return mix_bits(hash);
}

PhiloxKey philox_key(uint64_t seed, uint64_t step, uint64_t site) {
  const uint64_t bits = mix_bits(mix_bits(mix_bits(seed) ^ step) ^ site);
  return {static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32)};
}

PhiloxKey philox_key_of_head(PhiloxKey site, int64_t head) {
  const uint64_t bits =
      mix_bits((uint64_t{site[1]} << 32 | site[0]) ^ mix_bits(static_cast<uint64_t>(head)));
  return {static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32)};
}

uint32_t philox_element(PhiloxKey key, uint64_t sample, uint32_t position, uint32_t channel) {
  const uint32_t block = channel / 64 * 16 + channel % 16;
  const PhiloxCounter counter = {block, position, static_cast<uint32_t>(sample),
                                 static_cast<uint32_t>(sample >> 32)};
  return philox(counter, key)[channel % 64 / 16];
}

uint32_t dropout_threshold(double probability) {
  RAPT_CHECK(probability >= 0 && probability < 1,
             "dropout: expected a probability in [0, 1), got {}", probability);
  return static_cast<uint32_t>(std::llround(std::min(probability * 0x1p32, 0x1p32 - 1)));
}

uint32_t Rng::next() {
  const uint64_t block = position_ / 4;
  if (position_ % 4 == 0) {
    words_ = philox({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                     static_cast<uint32_t>(stream_), static_cast<uint32_t>(stream_ >> 32)},
                    {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)});
  }
  return words_[position_++ % 4];
}

void Rng::seek(uint64_t position) {
  position_ = position / 4 * 4;
  while (position_ < position) next();
}

double Rng::uniform() {
  const uint64_t high = next() >> 5, low = next() >> 6;  // 27 and 26 bits
  return static_cast<double>(high << 26 | low) * 0x1p-53;
}

double Rng::uniform(double low, double high) { return low + (high - low) * uniform(); }

double Rng::normal() {
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

int64_t Rng::below(int64_t limit) {
  RAPT_CHECK(limit > 0, "Rng::below: expected a positive limit, got {}", limit);
  const uint64_t n = static_cast<uint64_t>(limit), bound = UINT64_MAX - UINT64_MAX % n;
  for (;;) {  // rejection keeps it exactly uniform
    const uint64_t high = next(), value = high << 32 | next();
    if (value < bound) return static_cast<int64_t>(value % n);
  }
}

}  // namespace rapt
