// What every way of decoding does with its sentences. For sources only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rapt/decode/length_limit.h"
#include "rapt/models/encoder_decoder.h"

namespace rapt::decode {

// (N) i32.
Tensor as_tensor(const std::vector<int32_t>& ids);

// The sentences one behind the other, encoded -> memory of (Ns, C).
nn::Memory encode(const models::EncoderDecoder& model,
                  std::span<const std::vector<int32_t>> sentences, const Pass& pass);

// The most target tokens of each sentence, the end token not counted: the least of what `limit`
// says and what the model's positions allow, but one at least. (The last step reads so many, the
// start included, and may still add the end.) Throws Error as `who` for a limit that cannot be, and
// (data) for a sentence longer than the model's max_len, naming it.
std::vector<int64_t> token_limits(const models::EncoderDecoder& model,
                                  std::span<const std::vector<int32_t>> sentences,
                                  const LengthLimit& limit, const char* who);

}  // namespace rapt::decode
