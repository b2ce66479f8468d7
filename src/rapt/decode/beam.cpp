#include "rapt/decode/beam.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rapt/base/check.h"
#include "rapt/decode/alignment.h"
#include "rapt/decode/best_tokens.h"
#include "rapt/decode/sentences.h"
#include "rapt/ops/attention.h"
#include "rapt/tensor/dispatch.h"

namespace rapt::decode {
namespace {

// What a hypothesis is compared by; `length` counts the end token. Wu et al. 2016, section 7, with
// the divisor that they had before ((5 + length) / 6)^A.
double normalised(double log_probability, int64_t length, double penalty) {
  return log_probability / std::pow(static_cast<double>(length), penalty);
}

// What a source of which so much has been looked at adds to a hypothesis: Wu et al. 2016, equation
// 14, without its factor. At most 0, whatever comes later. A weight that f32 cannot hold counts as
// the least that it can.
double log_coverage(const std::vector<double>& coverage) {
  double sum = 0;
  for (const double looked : coverage)
    sum +=
        std::log(std::clamp(looked, static_cast<double>(std::numeric_limits<float>::min()), 1.0));
  return sum;
}

// A hypothesis that goes on.
struct Open {
  std::vector<int32_t> ids;
  double log_probability = 0;
  std::vector<double> coverage;  // of each source token; empty where it is not asked for
  int64_t slot = 0;              // of the cache, counted within the sentence
};

struct Copy {
  int64_t from, to;  // slots
};

// The hypotheses of one sentence.
class Beams {
 public:
  // tokens: of the source; limit: the most tokens of a hypothesis.
  Beams(const BeamOptions& options, int64_t limit, int32_t end_id, size_t tokens)
      : options_(options), limit_(limit), end_id_(end_id) {
    if (tokens == 0) {
      ended_.push_back({.ids = {}, .ended = true});
    } else {
      open_.push_back({.ids = {}, .coverage = std::vector<double>(covers() ? tokens : 0)});
    }
  }

  // Those that go on, the most probable first, and how many may do so after the next step.
  const std::vector<Open>& open() const { return open_; }
  int64_t places() const { return options_.beam - static_cast<int64_t>(ended_.size()); }

  // The indices of open() in the order of their slots.
  std::vector<size_t> by_slot() const {
    std::vector<size_t> order(open_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return open_[a].slot < open_[b].slot; });
    return order;
  }

  // looked[i, s]: how much the i-th hypothesis of by_slot() looks at source token s as it chooses
  // its next token.
  void cover(const std::vector<double>& looked) {
    const std::vector<size_t> order = by_slot();
    for (size_t i = 0; i < order.size(); ++i) {
      std::vector<double>& coverage = open_[order[i]].coverage;
      for (size_t k = 0; k < coverage.size(); ++k) coverage[k] += looked[i * coverage.size() + k];
    }
  }

  // best[i]: the best tokens after the i-th hypothesis of by_slot(). Returns what to copy so that
  // each open hypothesis has its keys and values in its slot.
  std::vector<Copy> step(std::span<const std::vector<Candidate>> best) {
    std::vector<size_t> parents;
    std::vector<Open> next;
    for (const Extension& e : best_extensions(best)) {
      Open longer = open_[e.parent];
      longer.log_probability = e.log_probability;
      if (e.id == end_id_) {
        end(std::move(longer), true);
      } else {
        longer.ids.push_back(e.id);
        next.push_back(std::move(longer));
        parents.push_back(e.parent);
      }
    }
    std::vector<Copy> copies = give_slots(next, parents);
    open_ = std::move(next);
    if (!open_.empty() && static_cast<int64_t>(open_.front().ids.size()) == limit_) {
      for (Open& hypothesis : open_) end(std::move(hypothesis), false);
      open_.clear();
    }
    if (options_.early_stopping && is_decided()) open_.clear();
    return copies;
  }

  std::vector<Hypothesis> results() && {
    sort_ended();
    ended_.resize(std::min(ended_.size(), static_cast<size_t>(options_.n_best)));
    return std::move(ended_);
  }

 private:
  bool covers() const { return options_.coverage_penalty > 0; }

  struct Extension {
    size_t parent;
    int32_t id;
    double log_probability;
  };

  // Of equals the one whose parent is more probable, then the better token comes first.
  std::vector<Extension> best_extensions(std::span<const std::vector<Candidate>> best) const {
    const std::vector<size_t> order = by_slot();
    std::vector<const std::vector<Candidate>*> of_parent(open_.size());
    for (size_t i = 0; i < order.size(); ++i) of_parent[order[i]] = &best[i];
    std::vector<Extension> all;
    for (size_t parent = 0; parent < open_.size(); ++parent) {
      for (const Candidate& c : *of_parent[parent])
        all.push_back({parent, c.id, open_[parent].log_probability + c.log_probability});
    }
    std::stable_sort(all.begin(), all.end(), [](const Extension& a, const Extension& b) {
      return a.log_probability > b.log_probability;
    });
    all.resize(std::min(all.size(), static_cast<size_t>(places())));
    return all;
  }

  // The first child of a hypothesis stays in its slot, the others get those of hypotheses that do
  // not go on.
  std::vector<Copy> give_slots(std::vector<Open>& next, const std::vector<size_t>& parents) const {
    std::vector<bool> inherited(open_.size(), false), taken(static_cast<size_t>(options_.beam));
    std::vector<size_t> others;
    for (size_t i = 0; i < next.size(); ++i) {
      if (inherited[parents[i]]) {
        others.push_back(i);
      } else {
        inherited[parents[i]] = true;
        taken[static_cast<size_t>(next[i].slot)] = true;
      }
    }
    std::vector<Copy> copies;
    int64_t free = 0;
    for (const size_t i : others) {
      while (taken[static_cast<size_t>(free)]) ++free;
      copies.push_back({next[i].slot, free});
      next[i].slot = free++;
    }
    return copies;
  }

  void end(Open hypothesis, bool ended) {
    const int64_t length = static_cast<int64_t>(hypothesis.ids.size()) + (ended ? 1 : 0);
    double score = normalised(hypothesis.log_probability, length, options_.length_penalty);
    if (covers()) score += options_.coverage_penalty * log_coverage(hypothesis.coverage);
    ended_.push_back({.ids = std::move(hypothesis.ids),
                      .log_probability = hypothesis.log_probability,
                      .score = score,
                      .ended = ended});
  }

  // Of equal scores the one that ended first comes first.
  void sort_ended() {
    std::stable_sort(ended_.begin(), ended_.end(),
                     [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
  }

  // Whether none that is open can come among the n best. Log-probabilities only fall, and their
  // normalised value changes in one direction with the length: the most that the most probable one
  // can reach is what it would have if it lost nothing, at the next length or at the last, and had
  // looked at all of the source, which adds 0. The margin covers the rounding of the quotients.
  bool is_decided() {
    const auto n = static_cast<size_t>(options_.n_best);
    if (open_.empty() || ended_.size() < n) return false;
    sort_ended();
    const double now = open_.front().log_probability, penalty = options_.length_penalty;
    const int64_t next = static_cast<int64_t>(open_.front().ids.size()) + 1;
    const double most =
        std::max(normalised(now, next, penalty), normalised(now, limit_, penalty)) * (1 - 1e-12);
    return most < ended_[n - 1].score;
  }

  BeamOptions options_;
  int64_t limit_;
  int32_t end_id_;
  std::vector<Open> open_;
  std::vector<Hypothesis> ended_;
};

// A batch of sentences; sentence b has the slots [b K, (b + 1) K) of the cache.
class Search {
 public:
  Search(const models::EncoderDecoder& model, std::span<const std::vector<int32_t>> sentences,
         const BeamOptions& options)
      : model_(model), beam_(options.beam), prefixes_(options.prefixes) {
    const LengthLimit limit{options.max_length, options.max_length_ratio, options.max_length_extra};
    const std::vector<int64_t> limits =
        token_limits(model, sentences, options.prefixes, limit, "beam search");
    for (size_t b = 0; b < sentences.size(); ++b)
      beams_.emplace_back(options, limits[b], model.config().end_id, sentences[b].size());
    if (options.coverage_penalty > 0) {
      capture_.wants = cross_attention_of(alignment_layer(model));
      pass_ = pass_.with_capture(capture_);
    }
    memory_ = encode(model, sentences, pass_);
    state_ = model.start(memory_, pass_, beam_);
  }

  bool going_on() const {
    return std::any_of(beams_.begin(), beams_.end(),
                       [](const Beams& b) { return !b.open().empty(); });
  }

  void step(int64_t t) {
    const Batch batch = next_batch(t);
    const Tensor logits = model_.step(as_tensor(batch.ids), batch.slots, batch.sources, memory_,
                                      state_, pass_);  // (open hypotheses, V)
    const auto best = best_tokens(logits, batch.wanted, "beam search", t);
    cover();
    size_t row = 0;
    for (size_t b = 0; b < beams_.size(); ++b) {
      const size_t open = beams_[b].open().size();
      if (open == 0) continue;
      const int64_t first = static_cast<int64_t>(b) * beam_;
      for (const Copy& copy : beams_[b].step(std::span(best).subspan(row, open))) {
        for (nn::DecoderLayerState& layer : state_)
          layer.self.copy(first + copy.from, first + copy.to);
      }
      row += open;
    }
  }

  std::vector<std::vector<Hypothesis>> results() && {
    std::vector<std::vector<Hypothesis>> results;
    results.reserve(beams_.size());
    for (Beams& beams : beams_) results.push_back(std::move(beams).results());
    return results;
  }

 private:
  // The last tokens of the open hypotheses, in the order of their slots.
  struct Batch {
    std::vector<int32_t> ids;
    std::vector<Wanted> wanted;  // which extensions of each may be needed
    Rows slots, sources;         // the tokens of each slot (one or none), and of each sentence
  };

  Batch next_batch(int64_t t) const {
    Batch batch;
    std::vector<Segment> slots, sources;
    for (size_t b = 0; b < beams_.size(); ++b) {
      const std::vector<Open>& open = beams_[b].open();
      const auto count = static_cast<int64_t>(open.size());
      sources.push_back({static_cast<int64_t>(batch.ids.size()), count, t, b});
      int64_t slot = 0;
      const auto skip_to = [&](int64_t end) {
        for (; slot < end; ++slot)
          slots.push_back({static_cast<int64_t>(batch.ids.size()), 0, t, b});
      };
      for (const size_t i : beams_[b].by_slot()) {
        skip_to(open[i].slot);
        slots.push_back({static_cast<int64_t>(batch.ids.size()), 1, t, b});
        ++slot;
        batch.ids.push_back(open[i].ids.empty() ? model_.config().start_id : open[i].ids.back());
        batch.wanted.push_back({beams_[b].places(), forced_token(prefixes_, b, t)});
      }
      skip_to(beam_);
    }
    batch.slots = Rows(std::move(slots));
    batch.sources = Rows(std::move(sources));
    return batch;
  }

  // What the hypotheses looked at in the step that was captured, if one was.
  void cover() {
    if (capture_.entries.empty()) return;
    const Tensor looked =
        mean_heads(capture_.entries.front().weights);  // (B, most open, longest S)
    capture_.entries.clear();
    dispatch_float(looked.dtype(), "beam search", [&](auto tag) {
      using T = decltype(tag);
      for (size_t b = 0; b < beams_.size(); ++b) {
        const auto open = static_cast<int64_t>(beams_[b].open().size());
        const int64_t tokens = memory_.rows[static_cast<int64_t>(b)].count;
        std::vector<double> rows;
        for (int64_t i = 0; i < open; ++i) {
          const T* row =
              looked.data<T>() + (static_cast<int64_t>(b) * looked.dim(1) + i) * looked.dim(2);
          rows.insert(rows.end(), row, row + tokens);
        }
        beams_[b].cover(rows);
      }
    });
  }

  const models::EncoderDecoder& model_;
  AttentionCapture capture_;
  Pass pass_ = Pass::inference();
  int64_t beam_;
  Sentences prefixes_;
  nn::Memory memory_;
  std::vector<nn::DecoderLayerState> state_;
  std::vector<Beams> beams_;
};

void check(const BeamOptions& options) {
  RAPT_CHECK(options.beam >= 1, "beam search: expected a beam of at least 1, got {}", options.beam);
  RAPT_CHECK(options.n_best >= 1 && options.n_best <= options.beam,
             "beam search: expected n_best of 1 to {} (the beam), got {}", options.beam,
             options.n_best);
  RAPT_CHECK(std::abs(options.length_penalty) <= 10,
             "beam search: expected a length_penalty of -10 to 10, got {}", options.length_penalty);
  RAPT_CHECK(options.coverage_penalty >= 0 && options.coverage_penalty <= 10,
             "beam search: expected a coverage_penalty of 0 to 10, got {}",
             options.coverage_penalty);
}

}  // namespace

std::vector<std::vector<Hypothesis>> beam_search(const models::EncoderDecoder& model,
                                                 std::span<const std::vector<int32_t>> sentences,
                                                 const BeamOptions& options) {
  check(options);
  Search search(model, sentences, options);
  for (int64_t t = 0; search.going_on(); ++t) search.step(t);
  return std::move(search).results();
}

}  // namespace rapt::decode
