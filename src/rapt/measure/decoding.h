// What decoding takes: `rapt bench translate`.
//
// The encoder-decoder at the paper's size, 6 + 6 layers, C 512, F 2048, the norm after, 32,000
// words on each side, every matrix its own, random weights: 96 sources of 8 to 40 tokens, for each
// 28 new tokens. The end token never wins, so that the length is what it is.
#pragma once

#include <cstdint>

#include "rapt/tensor/shape.h"

namespace rapt::measure {

// What is computed in; of int8 the products alone.
enum class DecodingType { f32, bf16, int8 };

struct DecodingOptions {
  int64_t beam = 1;    // 1: greedy
  int64_t batch = 32;  // sources decoded together, those of like length
  int64_t runs = 3;    // timed, each over all sources, after one that is not
  uint64_t seed = 0;
  DecodingType type = DecodingType::f32;
};

struct DecodingResult {
  int threads = 0;
  double run_ms = 0, min_ms = 0, max_ms = 0;     // of all sources: median, least, largest
  double tokens_per_s = 0, least = 0, most = 0;  // new tokens, of those runs
  // From a batch of sources to their first token: encoder, one step, the choice. The median over
  // five batches.
  double first_token_ms = 0;
  double flops_per_s = 0;  // of products and attention
  double fraction_of_peak = 0;
  int64_t rss_mib = 0;  // peak resident memory of decoding, the model included
};

// Throws Error (usage) for a beam, a batch or runs below 1.
DecodingResult run_decoding(const DecodingOptions& options);

}  // namespace rapt::measure
