// The best tokens of a row of logits.
#pragma once

#include <cstdint>
#include <vector>

#include "rapt/tensor/tensor.h"

namespace rapt::decode {

struct Candidate {
  int32_t id = 0;
  double logit = 0;
  double log_probability = 0;
};

// What is wanted of a row of logits.
struct Wanted {
  int64_t count = 1;    // so many tokens
  int32_t forced = -1;  // or this one alone; below 0: any
};

// logits (N, V) -> for each row the best tokens that are wanted, the best first, of equal ones the
// smaller id; fewer where fewer have a probability above 0. Throws Error (data) as `who` where a
// row has a logit that is not a number or no finite one, naming the step.
std::vector<std::vector<Candidate>> best_tokens(const Tensor& logits,
                                                const std::vector<Wanted>& wanted, const char* who,
                                                int64_t step);

}  // namespace rapt::decode
