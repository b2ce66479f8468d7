// Greedy decoding: the best next token, step by step, with a key/value cache.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rapt/models/encoder_decoder.h"

namespace rapt::decode {

struct GreedyOptions {
  // The most target tokens of a sentence, the end token not counted; 0: what the model's positions
  // allow. A sentence that reaches it stops there.
  int64_t max_length = 0;
  // Bounds by the source's length, as LengthLimit has them; a ratio of 0 sets none.
  double max_length_ratio = 0;
  int64_t max_length_extra = 0;
  // What the translations must begin with, one a sentence (empty: nothing), or none at all. A
  // prefix stands whole, whatever the limits, and its log-probabilities count. Empty sentences have
  // none.
  std::span<const std::vector<int32_t>> prefixes = {};
};

struct Decoded {
  std::vector<int32_t> ids;  // without start and end
  double score = 0;          // the sum of the log-probabilities of the tokens, the end included
  double margin = 0;         // the least distance between the best and the second logit of a step;
                             // infinity where none was chosen
  bool ended = false;        // by the end token, not by the length limit
};

// Decodes the sentences together; what one becomes does not depend on the others. An empty sentence
// gives an empty one. Throws Error (data) for a sentence longer than the model's max_len, naming
// it, for such a prefix, and for logits that are not finite, naming the step.
std::vector<Decoded> greedy(const models::EncoderDecoder& model,
                            std::span<const std::vector<int32_t>> sentences,
                            const GreedyOptions& options = {});

}  // namespace rapt::decode
