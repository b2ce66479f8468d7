// How long a translation may become.
#pragma once

#include <cstdint>

namespace rapt::decode {

// What is used unless asked otherwise: two target tokens for each of the source and 50 more. A
// constant of 50 above the source's length is what Vaswani et al. 2017, section 6.1, allow; the
// factor leaves room for languages that take more tokens.
inline constexpr double kLengthRatio = 2;
inline constexpr int64_t kLengthExtra = 50;

inline constexpr double kMostLengthRatio = 1000;
inline constexpr int64_t kMostLengthExtra = int64_t{1} << 40;

// The most target tokens of a sentence of S source tokens, the end token not counted: the least of
// max_length and ratio * S (rounded down) + extra, one at least. 0 leaves a bound out: max_length,
// or the ratio with its extra. The model's positions bound what is left. It depends on no other
// sentence.
struct LengthLimit {
  int64_t max_length = 0;
  double ratio = 0;
  int64_t extra = 0;
};

}  // namespace rapt::decode
