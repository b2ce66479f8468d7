// Subword models learnt from text, by the SentencePiece library.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rapt/text/subwords.h"

namespace rapt::text {

struct SubwordTraining {
  int64_t vocabulary = 8000;  // pieces, special ones included: at most so many
  SubwordModel model = SubwordModel::unigram;
  // The share of the text's characters that get pieces; the rarest are left out, e.g. 0.9995 for
  // Chinese and Japanese.
  double character_coverage = 1;
  std::vector<std::string> user_symbols{};  // never cut nor normalised
  bool byte_fallback = false;               // 256 byte pieces, for characters without a piece
  std::string normalisation = "nmt_nfkc";   // or nfkc, nmt_nfkc_cf, nfkc_cf (lower case), identity
  uint64_t seed = 0;
};

// Gives the next line, nothing after the last; a view is valid until the next call.
using LineSource = std::function<std::optional<std::string_view>()>;

// Learns a model. Its first pieces are `<pad>` 0, `<s>` 1, `</s>` 2 and `<unk>` 3, as a vocabulary
// of words has them. The same lines and options give the same model. Lines over 1 MB are left out.
// Throws Error: usage on options that cannot be, data where the text is empty, config where the
// vocabulary is too small for the text's characters; and what `lines` throws.
Subwords train_subwords(const LineSource& lines, const SubwordTraining& options);

}  // namespace rapt::text
