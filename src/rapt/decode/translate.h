// Lines translated by a translator: many at once, an answer for each, in order.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rapt/decode/alignment.h"
#include "rapt/decode/beam.h"
#include "rapt/decode/greedy.h"
#include "rapt/decode/length_limit.h"
#include "rapt/decode/sample.h"
#include "rapt/decode/translator.h"
#include "rapt/text/lines.h"

namespace rapt::decode {

inline constexpr int64_t kMostLinesOfBatch = int64_t{1} << 20;

struct TranslateOptions {
  int64_t batch = 32;  // lines decoded together; changes no result
  GreedyOptions greedy{.max_length_ratio = kLengthRatio, .max_length_extra = kLengthExtra};
  std::optional<BeamOptions> beam = {};  // beam search rather than greedy
  // Draws rather than greedy; a line is known to the random numbers by its number. Not with a beam.
  std::optional<SampleOptions> sample = {};
  // What each line's translation must begin with, a line each; blank ones leave it free. Prefixes
  // of the options above are not used.
  text::LineReader* prefixes = nullptr;
  bool alignments = false;  // whether Translation::alignment is wanted
  // Whether the next line can be read without waiting for whoever writes it; unset: always. Where
  // it cannot, what was read is translated first. Changes no result.
  std::function<bool()> ready = {};
};

struct Alternative {
  Hypothesis hypothesis;
  std::string text;
};

// What became of a line.
struct Translation {
  int64_t line = 0;                 // its number, from 1
  std::string source_text;          // as it was read, where alignments are wanted
  std::vector<int32_t> source;      // its tokens
  std::vector<int32_t> prefix;      // the tokens that its translation must begin with
  Decoded decoded;                  // by beam search the best hypothesis, without margin
  std::string text;                 // what `decoded` says
  std::vector<Alternative> n_best;  // of beam search, the best first; one is `decoded`
  std::vector<Link> alignment;      // of the words of `text`
  std::string refused;              // why it was not translated; everything else is empty then
};

// Translates what is left of `lines` and calls `each` once a line, in order, as soon as a line and
// those before it are done. Lines that can be read at once, up to some batches of them, are sorted
// by length, so that those of a batch end at about the same step.
//
// A blank line gives an empty translation. A line that cannot be translated is refused and the
// others go on: text that is not UTF-8, too long a line, a word that the vocabulary lacks without
// <unk>, more words than the model has positions; in the line or in its prefix. Throws Error where
// reading fails, (data) where there are fewer or more prefixes than lines, and what `each` throws.
void translate_lines(const Translator& translator, text::LineReader& lines,
                     const TranslateOptions& options,
                     const std::function<void(const Translation&)>& each);

}  // namespace rapt::decode
