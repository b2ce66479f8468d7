// Decoding with one hypothesis a sentence: a token a step, by whatever way of choosing.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "rapt/base/check.h"
#include "rapt/base/thread_pool.h"
#include "rapt/decode/greedy.h"
#include "rapt/decode/sentences.h"
#include "rapt/ops/softmax.h"
#include "rapt/tensor/dispatch.h"

namespace rapt::decode {

struct Choice {
  int32_t id = 0;
  // Between the best logit and the second.
  double margin = std::numeric_limits<double>::infinity();
};

// Where a token is chosen: the sentence's number in the batch, the step, and its tokens so far.
struct Place {
  size_t sentence;
  int64_t step;
  const std::vector<int32_t>& ids;
};

// Which sentences of a batch are still going on, and what they have become. `Choose` is a function
// of a row of V logits, float or double, V, and the Place, that gives a Choice; it is called from
// several threads.
template <class Choose>
class TokenLoop {
 public:
  TokenLoop(const models::EncoderDecoder& model, Sentences sentences, const LengthLimit& limit,
            Sentences prefixes, const char* who, const Choose& choose)
      : model_(model),
        prefixes_(prefixes),
        who_(who),
        choose_(choose),
        limits_(token_limits(model, sentences, prefixes, limit, who)),
        results_(sentences.size()) {
    memory_ = encode(model, sentences, pass_);
    state_ = model.start(memory_, pass_);
    for (size_t b = 0; b < sentences.size(); ++b) {
      results_[b].margin = std::numeric_limits<double>::infinity();
      results_[b].ended = sentences[b].empty();
      if (!sentences[b].empty()) open_.push_back(b);
    }
  }

  std::vector<Decoded> run() && {
    for (int64_t t = 0; !open_.empty(); ++t) step(t);
    return std::move(results_);
  }

 private:
  void step(int64_t t) {
    std::vector<int32_t> ids;
    std::vector<Segment> segments;
    for (size_t b = 0, i = 0; b < results_.size(); ++b) {
      const bool goes_on = i < open_.size() && open_[i] == b;
      segments.push_back({static_cast<int64_t>(i), goes_on ? 1 : 0, t, b});
      if (!goes_on) continue;
      ids.push_back(t == 0 ? model_.config().start_id : results_[b].ids.back());
      ++i;
    }
    const Tensor logits = model_.step(as_tensor(ids), Rows(std::move(segments)), memory_, state_,
                                      pass_);  // (open, V)
    const Tensor log_sums = log_sum_exp(logits);
    dispatch_float(logits.dtype(), who_, [&](auto tag) {
      using T = decltype(tag);
      const int64_t V = logits.dim(1);
      const T* rows = logits.data<T>();
      const T* sums = log_sums.data<T>();
      parallel_ranges(logits.dim(0), 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          extend(open_[static_cast<size_t>(i)], t, rows + i * V, sums[i], V);
      });
    });
    std::erase_if(open_, [&](size_t b) {
      return results_[b].ended || std::cmp_greater_equal(results_[b].ids.size(), limits_[b]);
    });
  }

  template <class T>
  void extend(size_t b, int64_t t, const T* logits, T log_sum, int64_t V) {
    Decoded& result = results_[b];
    const int32_t forced = forced_token(prefixes_, b, t);
    const Choice choice =
        forced >= 0 ? Choice{.id = forced} : choose_(logits, V, Place{b, t, result.ids});
    const double log_probability =
        static_cast<double>(logits[choice.id]) - static_cast<double>(log_sum);
    if (std::isnan(log_probability)) {
      fail(ErrorKind::data,
           "{}: the logits of step {} are not numbers; the model's weights are bad", who_, t);
    }
    result.score += log_probability;
    result.margin = std::min(result.margin, choice.margin);
    result.ended = choice.id == model_.config().end_id;
    if (!result.ended) result.ids.push_back(choice.id);
  }

  const models::EncoderDecoder& model_;
  Sentences prefixes_;
  const char* who_;
  const Choose& choose_;
  const Pass pass_ = Pass::inference();
  std::vector<int64_t> limits_;
  nn::Memory memory_;
  std::vector<nn::DecoderLayerState> state_;
  std::vector<size_t> open_;  // the sentences that go on
  std::vector<Decoded> results_;
};

}  // namespace rapt::decode
