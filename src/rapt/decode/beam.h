// Beam search: the best translations of those that a bounded number of hypotheses reach, step by
// step, with a key/value cache that the beams of a sentence share where they agree.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rapt/models/encoder_decoder.h"

namespace rapt::decode {

struct BeamOptions {
  int64_t beam = 4;    // K: hypotheses of a sentence, those that have ended included
  int64_t n_best = 1;  // how many to return, at most `beam`
  // Hypotheses are compared by log-probability / length^length_penalty, the end token counted. 0
  // compares the log-probabilities, larger values favour longer translations, negative ones
  // shorter. This is the first form of Wu et al. 2016, section 7 (who found 0.6 to 0.7 best), and
  // what Marian's --normalize, fairseq's --lenpen and CTranslate2's length_penalty say; it is not
  // their last, ((5 + length) / 6)^A, whose numbers mean something else.
  double length_penalty = 1;
  // B: B times the sum over the source's tokens of log(min(what all target tokens together looked
  // at it, 1)) is added to what hypotheses are compared by, so that those fall behind that leave a
  // part of the source out: Wu et al. 2016, equation 14. How much was looked at is what
  // soft_alignment() says, the end token counted. At least 0.
  double coverage_penalty = 0;
  int64_t max_length = 0;  // this and what follows as GreedyOptions has them
  double max_length_ratio = 0;
  int64_t max_length_extra = 0;
  std::span<const std::vector<int32_t>> prefixes = {};
  // Whether a sentence is done as soon as no open hypothesis can come among the n best any more;
  // changes no result, only the time.
  bool early_stopping = true;
};

struct Hypothesis {
  std::vector<int32_t> ids;    // without start and end
  double log_probability = 0;  // natural logarithms, summed over the tokens, the end included
  double score = 0;            // log_probability / length^length_penalty, and what coverage adds
  bool ended = false;          // by the end token, not by the length limit
};

// The n best hypotheses of each sentence, the best first, all different; fewer where the search
// finds fewer. A step extends each open hypothesis by every token, and the best extensions go on or
// end; the K of a sentence are shared by both, so that the search is done when K have ended, as in
// Marian. With K = 1 this is greedy(), bit for bit.
//
// What a sentence becomes does not depend on the others. An empty sentence gives one empty
// hypothesis. Throws Error for options that cannot be, and else as greedy() does.
std::vector<std::vector<Hypothesis>> beam_search(const models::EncoderDecoder& model,
                                                 std::span<const std::vector<int32_t>> sentences,
                                                 const BeamOptions& options = {});

}  // namespace rapt::decode
