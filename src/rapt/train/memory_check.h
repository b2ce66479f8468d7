// Whether training fits in memory, before it begins.
#pragma once

#include "rapt/train/seq2seq.h"

namespace rapt::train {

// Goes forward and back through the largest batch of the first epoch, and keeps nothing of it.
// Throws Error (memory) where that passes the limit of set_memory_limit(), which says how many
// tokens a batch may have. The optimizer's state and bf16 twins are there already.
void check_memory(const models::EncoderDecoder& model, const data::PairCorpus& corpus,
                  const FitOptions& options);

}  // namespace rapt::train
