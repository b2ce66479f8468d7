#include "rapt/decode/sentences.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "rapt/base/check.h"

namespace rapt::decode {
namespace {

void check(const LengthLimit& limit, const char* who) {
  RAPT_CHECK(limit.max_length >= 0, "{}: expected max_length of at least 0, got {}", who,
             limit.max_length);
  RAPT_CHECK(limit.ratio >= 0 && limit.ratio <= kMostLengthRatio,
             "{}: expected max_length_ratio of 0 to {}, got {}", who, kMostLengthRatio,
             limit.ratio);
  RAPT_CHECK(limit.extra >= 0 && limit.extra <= kMostLengthExtra,
             "{}: expected max_length_extra of 0 to {}, got {}", who, kMostLengthExtra,
             limit.extra);
}

void check_positions(const models::EncoderDecoder& model, const std::vector<int32_t>& ids,
                     const char* what, size_t b, const char* who) {
  const int64_t positions = model.config().max_len;
  if (std::cmp_less_equal(ids.size(), positions)) return;
  fail(ErrorKind::data, "{}: {} {} has {} tokens, the model has {} positions (max_len)", who, what,
       b, ids.size(), positions);
}

void check_prefix(const models::EncoderDecoder& model, const std::vector<int32_t>& prefix, size_t b,
                  const char* who) {
  check_positions(model, prefix, "the prefix of sentence", b, who);
  const models::EncoderDecoderConfig& config = model.config();
  for (const int32_t id : prefix) {
    RAPT_CHECK(id >= 0 && id < config.tgt_vocab_size && id != config.end_id,
               "{}: the prefix of sentence {}: expected tokens of 0 to {} and not the end ({}), "
               "got {}",
               who, b, config.tgt_vocab_size - 1, config.end_id, id);
  }
}

}  // namespace

Tensor as_tensor(const std::vector<int32_t>& ids) {
  return Tensor::from(ids, {static_cast<int64_t>(ids.size())});
}

nn::Memory encode(const models::EncoderDecoder& model, Sentences sentences, const Pass& pass) {
  std::vector<int32_t> ids;
  std::vector<int64_t> lengths;
  for (const std::vector<int32_t>& sentence : sentences) {
    ids.insert(ids.end(), sentence.begin(), sentence.end());
    lengths.push_back(static_cast<int64_t>(sentence.size()));
  }
  return model.encode(as_tensor(ids), Rows::packed(lengths), pass);
}

std::vector<int64_t> token_limits(const models::EncoderDecoder& model, Sentences sentences,
                                  Sentences prefixes, const LengthLimit& limit, const char* who) {
  check(limit, who);
  RAPT_CHECK(prefixes.empty() || prefixes.size() == sentences.size(),
             "{}: expected no prefixes or one for each of {} sentences, got {}", who,
             sentences.size(), prefixes.size());
  std::vector<int64_t> limits;
  limits.reserve(sentences.size());
  for (size_t b = 0; b < sentences.size(); ++b) {
    check_positions(model, sentences[b], "sentence", b, who);
    const auto tokens = static_cast<int64_t>(sentences[b].size());
    const int64_t positions = model.config().max_len;
    int64_t most = limit.max_length == 0 ? positions : std::min(limit.max_length, positions);
    if (limit.ratio > 0) {
      const double by_source = limit.ratio * static_cast<double>(tokens);
      most = std::min(most, static_cast<int64_t>(by_source) + limit.extra);
    }
    if (!prefixes.empty()) {
      check_prefix(model, prefixes[b], b, who);
      most = std::max(most, static_cast<int64_t>(prefixes[b].size()));
    }
    limits.push_back(std::max<int64_t>(most, 1));
  }
  return limits;
}

int32_t forced_token(Sentences prefixes, size_t b, int64_t t) {
  if (prefixes.empty() || std::cmp_greater_equal(t, prefixes[b].size())) return -1;
  return prefixes[b][static_cast<size_t>(t)];
}

std::function<bool(std::string_view path)> cross_attention_of(int64_t layer) {
  return [wanted = fmt::format("decoder.layers.{}.cross_attention", layer)](std::string_view path) {
    return path == wanted;
  };
}

}  // namespace rapt::decode
