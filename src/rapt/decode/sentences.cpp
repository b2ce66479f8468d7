#include "rapt/decode/sentences.h"

#include <algorithm>

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

std::vector<int64_t> token_limits(const models::EncoderDecoder& model,
                                  std::span<const std::vector<int32_t>> sentences,
                                  const LengthLimit& limit, const char* who) {
  RAPT_CHECK(limit.max_length >= 0, "{}: expected max_length of at least 0, got {}", who,
             limit.max_length);
  RAPT_CHECK(limit.ratio >= 0 && limit.ratio <= kMostLengthRatio,
             "{}: expected max_length_ratio of 0 to {}, got {}", who, kMostLengthRatio,
             limit.ratio);
  RAPT_CHECK(limit.extra >= 0 && limit.extra <= kMostLengthExtra,
             "{}: expected max_length_extra of 0 to {}, got {}", who, kMostLengthExtra,
             limit.extra);
  const int64_t positions = model.config().max_len;
  std::vector<int64_t> limits;
  limits.reserve(sentences.size());
  for (size_t b = 0; b < sentences.size(); ++b) {
    const auto tokens = static_cast<int64_t>(sentences[b].size());
    if (tokens > positions) {
      fail(ErrorKind::data, "{}: sentence {} has {} tokens, the model has {} positions (max_len)",
           who, b, tokens, positions);
    }
    int64_t most = limit.max_length == 0 ? positions : std::min(limit.max_length, positions);
    if (limit.ratio > 0) {
      const double by_source = limit.ratio * static_cast<double>(tokens);
      most = std::min(most, static_cast<int64_t>(by_source) + limit.extra);
    }
    limits.push_back(std::max<int64_t>(most, 1));
  }
  return limits;
}

}  // namespace rapt::decode
