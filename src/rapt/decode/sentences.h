// What every way of decoding does with its sentences. For sources only.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "rapt/decode/length_limit.h"
#include "rapt/models/encoder_decoder.h"

namespace rapt::decode {

// Token ids, a sentence each.
using Sentences = std::span<const std::vector<int32_t>>;

// (N) i32.
Tensor as_tensor(const std::vector<int32_t>& ids);

// The sentences one behind the other, encoded -> memory of (Ns, C).
nn::Memory encode(const models::EncoderDecoder& model, Sentences sentences, const Pass& pass);

// The most target tokens of each sentence, the end token not counted: the least of what `limit`
// says and what the model's positions allow, but one at least and no less than its prefix. (The
// last step reads so many, the start included, and may still add the end.) Throws Error as `who`
// for a limit or a prefix that cannot be, for prefixes that are not one a sentence, and (data) for
// a sentence or a prefix longer than the model's max_len, naming it.
std::vector<int64_t> token_limits(const models::EncoderDecoder& model, Sentences sentences,
                                  Sentences prefixes, const LengthLimit& limit, const char* who);

// What sentence b must have as its token t, or -1 where it is free. `prefixes` may be none at all.
int32_t forced_token(Sentences prefixes, size_t b, int64_t t);

// Which attention a capture wants: the cross-attention of one decoder layer.
std::function<bool(std::string_view path)> cross_attention_of(int64_t layer);

}  // namespace rapt::decode
