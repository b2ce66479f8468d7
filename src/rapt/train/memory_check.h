// Whether training fits in memory, before it begins.
#pragma once

#include "rapt/train/seq2seq.h"

namespace rapt::train {

// Goes forward and back through the largest batch of the first epoch, and keeps nothing of it.
// Throws Error (memory) where that and `bytes_to_come`, which the optimizer will take, come within
// a sixteenth of the limit of set_memory_limit(); it says how many tokens a batch may have. bf16
// twins are there already.
void check_memory(const models::EncoderDecoder& model, const data::PairCorpus& corpus,
                  const FitOptions& options, int64_t bytes_to_come);

}  // namespace rapt::train
