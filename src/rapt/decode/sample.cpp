#include "rapt/decode/sample.h"

#include <cmath>

#include "rapt/base/check.h"
#include "rapt/base/random.h"
#include "rapt/decode/draw.h"
#include "rapt/decode/token_loop-inl.h"

namespace rapt::decode {
namespace {

void check(const SampleOptions& options, size_t sentences) {
  const double penalty = options.repetition_penalty;
  RAPT_CHECK(penalty > 0 && std::isfinite(penalty),
             "sampling: expected a repetition_penalty above 0, got {}", penalty);
  RAPT_CHECK(options.temperature >= 0 && std::isfinite(options.temperature),
             "sampling: expected a temperature of at least 0, got {}", options.temperature);
  RAPT_CHECK(options.top_k >= 0, "sampling: expected top_k of at least 0, got {}", options.top_k);
  RAPT_CHECK(options.top_p >= 0 && options.top_p <= 1, "sampling: expected top_p of 0 to 1, got {}",
             options.top_p);
  RAPT_CHECK(options.samples.empty() || options.samples.size() == sentences,
             "sampling: expected no sample keys or one for each of {} sentences, got {}", sentences,
             options.samples.size());
}

// In [0, 1), 53 bits.
double uniform_of(uint64_t seed, uint64_t sample, int64_t step) {
  const PhiloxKey key = philox_key(seed, sample, hash_text("decode.sample"));
  const auto position = static_cast<uint64_t>(step);
  const PhiloxCounter words =
      philox({static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32), 0, 0}, key);
  const uint64_t bits = (static_cast<uint64_t>(words[1]) << 32) | words[0];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

struct Draw {
  const SampleOptions& options;

  template <class T>
  Choice operator()(const T* logits, int64_t V, const Place& place) const {
    const uint64_t sample =
        options.samples.empty() ? place.sentence : options.samples[place.sentence];
    return {.id = draw_token(std::vector<double>(logits, logits + V), place.ids, options,
                             uniform_of(options.seed, sample, place.step), place.step),
            .margin = 0};
  }
};

}  // namespace

std::vector<Decoded> sample(const models::EncoderDecoder& model,
                            std::span<const std::vector<int32_t>> sentences,
                            const SampleOptions& options) {
  check(options, sentences.size());
  const LengthLimit limit{options.max_length, options.max_length_ratio, options.max_length_extra};
  return TokenLoop(model, sentences, limit, options.prefixes, "sampling", Draw{options}).run();
}

}  // namespace rapt::decode
