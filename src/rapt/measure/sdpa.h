// What scaled dot-product attention takes, alone: B 4, H 8, D 64.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "rapt/tensor/shape.h"

namespace rapt::measure {

struct AttentionTiming {
  int64_t T = 0;
  std::string mask;   // full, causal, lengths, dropout
  bool both = false;  // forward and backward, or forward alone
  int threads = 0;
  double step_ms = 0, min_ms = 0, max_ms = 0;  // median, least, largest
  double tokens_per_s = 0;                     // queries
  double flops_per_s = 0;  // of the keys that are seen, both ways three times forward
  double fraction_of_peak = 0;
  int64_t rss_mib = 0;  // peak resident memory of the process so far
};

struct AttentionCases {
  std::vector<int64_t> lengths = {128, 512, 2048};  // T, of queries and keys
  int64_t steps = 5;                                // timed, after one that is not
  DType type = DType::f32;                          // or bf16
  uint64_t seed = 0;
};

// For each T: everything seen; causal; keys hidden behind lengths T, T/2, T/4, T/4 by a bool mask;
// dropout 0.1 and causal (up to T 4096). Each forward alone and both ways, reported as it is
// measured.
void time_attention(const AttentionCases& cases,
                    const std::function<void(const AttentionTiming&)>& report);

}  // namespace rapt::measure
