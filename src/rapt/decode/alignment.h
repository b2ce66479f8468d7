// Word alignments from attention: which source token a target token looked at when it was chosen.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rapt/decode/translator.h"

namespace rapt::decode {

// The decoder layer whose cross-attention is read as an alignment, averaged over its heads: the
// last but one, which Garg et al. 2019, "Jointly learning to align and translate with Transformer
// models", found to align best; of a single layer that one. Throws Error where the model has none.
int64_t alignment_layer(const models::EncoderDecoder& model);

// source (S) and target (T) ids, without start and end -> (T, S): how much each target token, when
// it was chosen, looked at each source token. Rows add up to 1. Throws Error for longer ones than
// the model has positions.
Tensor soft_alignment(const models::EncoderDecoder& model, const std::vector<int32_t>& source,
                      const std::vector<int32_t>& target);

// Words by their numbers, from 0.
struct Link {
  int64_t source, target;
  bool operator==(const Link&) const = default;
  bool operator<(const Link& other) const {
    return std::pair(source, target) < std::pair(other.source, other.target);
  }
};

// The links between the words of a line and of its translation, sorted, each once: every token of
// the translation has one, to the source token that it looked at most (the first of equals). Words
// are what stands between spaces and tabs, in `line` and in the text of `target`; subwords have the
// numbers of the words that they lie in. `source`: the tokens of the line.
std::vector<Link> align_words(const Translator& translator, std::string_view line,
                              const std::vector<int32_t>& source,
                              const std::vector<int32_t>& target);

// "0-0 1-2 2-1", source first: the form of the Pharaoh decoder, which word aligners write.
std::string pharaoh(const std::vector<Link>& links);

}  // namespace rapt::decode
