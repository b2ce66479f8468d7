// Sampling: translations drawn from the model's distribution, or from one that is sharper.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rapt/decode/greedy.h"

namespace rapt::decode {

// What is done to the logits of a step, in this order; then a token is drawn from their softmax.
struct SampleOptions {
  // The logits of tokens that the translation has already are divided by this where they are
  // positive and multiplied where they are negative, once each: Keskar et al. 2019, section 4.1.
  // Above 0; 1 changes nothing.
  double repetition_penalty = 1;
  double temperature = 1;  // divides the logits; 0: the best token, as greedy decoding has it
  int64_t top_k = 0;       // only so many best tokens can be drawn (Fan et al. 2018); 0: all
  // Only the best tokens can be drawn whose probabilities add up to this or more (Holtzman et al.
  // 2020); the best one always can.
  double top_p = 1;
  uint64_t seed = 0;
  // What each sentence is to the random numbers, which depend on the seed, this and the step, and
  // on nothing else; none: its number in the batch.
  std::span<const uint64_t> samples = {};
  int64_t max_length = 0;  // this and what follows as GreedyOptions has them
  double max_length_ratio = 0;
  int64_t max_length_extra = 0;
  std::span<const std::vector<int32_t>> prefixes = {};
};

// A translation of each sentence, drawn token by token. The scores are what the model itself gives
// the tokens, and there are no margins (0). What one becomes does not depend on the others. Throws
// Error for options that cannot be, and else as greedy() does.
std::vector<Decoded> sample(const models::EncoderDecoder& model,
                            std::span<const std::vector<int32_t>> sentences,
                            const SampleOptions& options = {});

}  // namespace rapt::decode
