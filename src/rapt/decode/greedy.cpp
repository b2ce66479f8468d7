#include "rapt/decode/greedy.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rapt/base/check.h"
#include "rapt/decode/sentences.h"
#include "rapt/ops/softmax.h"
#include "rapt/tensor/dispatch.h"

namespace rapt::decode {
namespace {

struct Choice {
  int32_t id = 0;
  double best = -std::numeric_limits<double>::infinity(), second = best;
};

// The largest of V logits (the first of equals), and the one after it.
template <class T>
Choice choose(const T* logits, int64_t V, int64_t step) {
  Choice choice;
  for (int64_t v = 0; v < V; ++v) {
    const double logit = static_cast<double>(logits[v]);
    if (std::isnan(logit))
      fail(ErrorKind::data,
           "greedy: the logits of step {} are not numbers; the model's weights are bad", step);
    if (logit > choice.best) {
      choice.second = choice.best;
      choice.best = logit;
      choice.id = static_cast<int32_t>(v);
    } else {
      choice.second = std::max(choice.second, logit);
    }
  }
  if (!std::isfinite(choice.best)) {
    fail(ErrorKind::data, "greedy: the best logit of step {} is {}; the model's weights are bad",
         step, choice.best);
  }
  return choice;
}

// The decoding of a batch: which sentences are still going on, and their last tokens.
class Batch {
 public:
  Batch(const models::EncoderDecoder& model, std::span<const std::vector<int32_t>> sentences,
        std::vector<int64_t> limits)
      : model_(model),
        limits_(std::move(limits)),
        done_(sentences.size()),
        results_(sentences.size()) {
    for (size_t b = 0; b < sentences.size(); ++b) {
      results_[b].margin = std::numeric_limits<double>::infinity();
      results_[b].ended = done_[b] = sentences[b].empty();
    }
    memory_ = encode(model, sentences, pass_);
    state_ = model.start(memory_, pass_);
    last_.assign(sentences.size(), model.config().start_id);
  }

  bool going_on() const { return std::find(done_.begin(), done_.end(), false) != done_.end(); }

  void step(int64_t t) {
    std::vector<int32_t> ids;
    std::vector<Segment> segments;
    for (size_t b = 0; b < done_.size(); ++b) {
      segments.push_back({static_cast<int64_t>(ids.size()), done_[b] ? 0 : 1, t, b});
      if (!done_[b]) ids.push_back(last_[b]);
    }
    const Tensor logits = model_.step(as_tensor(ids), Rows(std::move(segments)), memory_, state_,
                                      pass_);  // (going on, V)
    const Tensor log_probabilities = log_softmax(logits);
    dispatch_float(logits.dtype(), "greedy", [&](auto tag) {
      using T = decltype(tag);
      const int64_t V = logits.dim(1);
      const T* row = logits.data<T>();
      const T* log_row = log_probabilities.data<T>();
      for (size_t b = 0; b < done_.size(); ++b) {
        if (done_[b]) continue;
        const Choice choice = choose(row, V, t);
        take(b, choice, static_cast<double>(log_row[choice.id]));
        row += V;
        log_row += V;
      }
    });
  }

  std::vector<Decoded> results() && { return std::move(results_); }

 private:
  void take(size_t b, const Choice& choice, double log_probability) {
    Decoded& result = results_[b];
    result.score += log_probability;
    result.margin = std::min(result.margin, choice.best - choice.second);
    result.ended = choice.id == model_.config().end_id;
    if (!result.ended) result.ids.push_back(choice.id);
    last_[b] = choice.id;
    done_[b] = result.ended || static_cast<int64_t>(result.ids.size()) >= limits_[b];
  }

  const models::EncoderDecoder& model_;
  const Pass pass_ = Pass::inference();
  std::vector<int64_t> limits_;
  nn::Memory memory_;
  std::vector<nn::DecoderLayerState> state_;
  std::vector<bool> done_;
  std::vector<int32_t> last_;
  std::vector<Decoded> results_;
};

}  // namespace

std::vector<Decoded> greedy(const models::EncoderDecoder& model,
                            std::span<const std::vector<int32_t>> sentences,
                            const GreedyOptions& options) {
  const LengthLimit limit{options.max_length, options.max_length_ratio, options.max_length_extra};
  Batch batch(model, sentences, token_limits(model, sentences, limit, "greedy"));
  for (int64_t t = 0; batch.going_on(); ++t) batch.step(t);
  return std::move(batch).results();
}

}  // namespace rapt::decode
