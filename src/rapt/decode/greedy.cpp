#include "rapt/decode/greedy.h"

#include "rapt/decode/token_loop-inl.h"
#include "rapt/ops/softmax.h"

namespace rapt::decode {
namespace {

// The largest of V logits (the first of equals), and how far the one after it is.
struct Best {
  template <class T>
  Choice operator()(const T* logits, int64_t V, const Place& place) const {
    constexpr double kLeast = -std::numeric_limits<double>::infinity();
    double best = kLeast, second = kLeast;
    int32_t id = 0;
    for (int64_t v = 0; (v = find_above(logits, v, V, static_cast<T>(second))) < V; ++v) {
      const double logit = static_cast<double>(logits[v]);
      if (std::isnan(logit))
        fail(ErrorKind::data,
             "greedy: the logits of step {} are not numbers; the model's weights are bad",
             place.step);
      if (logit > best) {
        second = best;
        best = logit;
        id = static_cast<int32_t>(v);
      } else {
        second = logit;
      }
    }
    if (!std::isfinite(best)) {
      fail(ErrorKind::data, "greedy: the best logit of step {} is {}; the model's weights are bad",
           place.step, best);
    }
    return {.id = id, .margin = best - second};
  }
};

}  // namespace

std::vector<Decoded> greedy(const models::EncoderDecoder& model,
                            std::span<const std::vector<int32_t>> sentences,
                            const GreedyOptions& options) {
  const LengthLimit limit{options.max_length, options.max_length_ratio, options.max_length_extra};
  return TokenLoop(model, sentences, limit, options.prefixes, "greedy", Best()).run();
}

}  // namespace rapt::decode
