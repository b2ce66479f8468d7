// Sentences and the same turned around: something that a small model can learn.
#pragma once

#include <cstdint>
#include <vector>

#include "rapt/base/random.h"
#include "rapt/data/pairs.h"

namespace rapt::testing {

// Four words from `first_id` on, in sentences of one word to `longest`.
inline data::PairCorpus reversed_pairs(int64_t pairs, int32_t first_id = 3, int64_t longest = 4,
                                       uint64_t seed = 8) {
  Rng rng(seed);
  data::PairCorpus corpus;
  for (int64_t i = 0; i < pairs; ++i) {
    std::vector<int32_t> source;
    const int64_t length = 1 + rng.below(longest);
    for (int64_t t = 0; t < length; ++t)
      source.push_back(first_id + static_cast<int32_t>(rng.below(4)));
    corpus.add(source, std::vector<int32_t>(source.rbegin(), source.rend()),
               static_cast<uint64_t>(i));
  }
  return corpus;
}

}  // namespace rapt::testing
