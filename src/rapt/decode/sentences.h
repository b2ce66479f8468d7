// What every way of decoding does with its sentences. For sources only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rapt/models/encoder_decoder.h"

namespace rapt::decode {

// (N) i32.
Tensor as_tensor(const std::vector<int32_t>& ids);

// The sentences one behind the other, encoded -> memory of (Ns, C).
nn::Memory encode(const models::EncoderDecoder& model,
                  std::span<const std::vector<int32_t>> sentences, const Pass& pass);

// The most target tokens of a sentence, the end token not counted: `max_length`, or with 0 what the
// model's positions allow. (The last step reads so many, the start included, and may still add the
// end.) Throws Error as `who` for a negative max_length, and (data) for a sentence longer than the
// model's max_len, naming it.
int64_t token_limit(const models::EncoderDecoder& model,
                    std::span<const std::vector<int32_t>> sentences, int64_t max_length,
                    const char* who);

}  // namespace rapt::decode
