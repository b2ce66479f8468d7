#include "rapt/decode/sentences.h"

#include <algorithm>
#include <utility>

#include "rapt/base/check.h"

namespace rapt::decode {

Tensor as_tensor(const std::vector<int32_t>& ids) {
  return Tensor::from(ids, {static_cast<int64_t>(ids.size())});
}

nn::Memory encode(const models::EncoderDecoder& model,
                  std::span<const std::vector<int32_t>> sentences, const Pass& pass) {
  std::vector<int32_t> ids;
  std::vector<int64_t> lengths;
  for (const std::vector<int32_t>& sentence : sentences) {
    ids.insert(ids.end(), sentence.begin(), sentence.end());
    lengths.push_back(static_cast<int64_t>(sentence.size()));
  }
  return model.encode(as_tensor(ids), Rows::packed(lengths), pass);
}

int64_t token_limit(const models::EncoderDecoder& model,
                    std::span<const std::vector<int32_t>> sentences, int64_t max_length,
                    const char* who) {
  RAPT_CHECK(max_length >= 0, "{}: expected max_length of at least 0, got {}", who, max_length);
  const int64_t positions = model.config().max_len;
  for (size_t b = 0; b < sentences.size(); ++b) {
    if (std::cmp_greater(sentences[b].size(), positions)) {
      fail(ErrorKind::data, "{}: sentence {} has {} tokens, the model has {} positions (max_len)",
           who, b, sentences[b].size(), positions);
    }
  }
  return max_length == 0 ? positions : std::min(max_length, positions);
}

}  // namespace rapt::decode
