// Counter-based random numbers: Philox 4x32-10, Salmon et al. 2011, "Parallel random numbers: as
// easy as 1, 2, 3". A number depends on its key and counter alone, so that no order of evaluation,
// number of threads or batch can change it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace rapt {

using PhiloxKey = std::array<uint32_t, 2>;
using PhiloxCounter = std::array<uint32_t, 4>;

// Four random words for a counter.
PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key);

// 64-bit mixing (the finaliser of SplitMix64) and hashing (FNV-1a, then mixed).
uint64_t mix_bits(uint64_t value);
uint64_t hash_text(std::string_view text, uint64_t seed = 0);

// The key of a site: one place of a model in one step of one run.
PhiloxKey philox_key(uint64_t seed, uint64_t step, uint64_t site);

// The key of head `head` at a site; attention's dropout differs by head.
PhiloxKey philox_key_of_head(PhiloxKey site, int64_t head);

// Element `channel` of the row (sample, position) under `key`: the word that decides over it.
// 64 channels share 16 counters: channel c takes word (c % 64) / 16 of block c / 64 * 16 + c % 16,
// so that the four words of 16 neighbouring counters are 64 neighbouring channels.
uint32_t philox_element(PhiloxKey key, uint64_t sample, uint32_t position, uint32_t channel);

// The threshold for a drop probability: an element is dropped if its word is below it.
uint32_t dropout_threshold(double probability);

// A stream of numbers for initialisation, shuffling and sampling: Philox with its own counter.
// The state is (seed, stream, position): two numbers more than the seed restore it.
class Rng {
 public:
  explicit Rng(uint64_t seed, uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  uint32_t next();   // uniform over 32 bits
  double uniform();  // in [0, 1), 53 bits
  double uniform(double low, double high);
  double normal();               // mean 0, variance 1 (Box-Muller)
  int64_t below(int64_t limit);  // uniform in [0, limit); limit > 0
  uint64_t position() const { return position_; }
  void seek(uint64_t position);

 private:
  uint64_t seed_ = 0, stream_ = 0, position_ = 0;
  PhiloxCounter words_{};
};

}  // namespace rapt
