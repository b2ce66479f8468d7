#include "rapt/data/batches.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "rapt/base/check.h"
#include "rapt/base/random.h"

namespace rapt::data {
namespace {

// A random order of `items`, the same for the same state of `rng` (Fisher and Yates).
template <class Item>
void shuffle(std::vector<Item>& items, Rng& rng) {
  for (size_t left = items.size(); left > 1; --left) {
    std::swap(items[left - 1], items[static_cast<size_t>(rng.below(static_cast<int64_t>(left)))]);
  }
}

void check(const BatchOptions& options, int64_t epoch) {
  if (options.pairs < 0 || options.tokens < 0 || (options.pairs == 0) == (options.tokens == 0)) {
    fail(ErrorKind::config,
         "batches: expected a number of pairs or a number of tokens above 0, and not both; got {} "
         "pairs and {} tokens",
         options.pairs, options.tokens);
  }
  RAPT_CHECK(epoch >= 0, "batches: expected an epoch of at least 0, got {}", epoch);
}

// Cuts a sequence of pairs into batches: [begin, end) of `order`, in order.
std::vector<std::pair<size_t, size_t>> cut(const PairCorpus& corpus, const BatchOptions& options,
                                           const std::vector<int64_t>& order) {
  std::vector<std::pair<size_t, size_t>> batches;
  size_t begin = 0;
  int64_t tokens = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const int64_t more = tokens_of(corpus, order[i]);
    if (options.tokens > 0 && more > options.tokens) {
      fail(ErrorKind::data,
           "batches: the pair of line {} has {} tokens, a batch may have {}; raise the budget or "
           "leave "
           "such pairs out",
           corpus.lines[static_cast<size_t>(order[i])] + 1, more, options.tokens);
    }
    const bool full = options.tokens > 0 ? tokens + more > options.tokens
                                         : std::cmp_equal(i - begin, options.pairs);
    if (full) {
      batches.emplace_back(begin, i);
      begin = i;
      tokens = 0;
    }
    tokens += more;
  }
  if (begin < order.size()) batches.emplace_back(begin, order.size());
  return batches;
}

}  // namespace

int64_t tokens_of(const PairCorpus& corpus, int64_t pair) {
  return corpus.sources.length(pair) + corpus.targets.length(pair) + 1;
}

BatchPlan::BatchPlan(const PairCorpus& corpus, const BatchOptions& options, int64_t epoch) {
  check(options, epoch);
  Rng rng(hash_text("batches", options.seed), static_cast<uint64_t>(epoch));
  std::vector<int64_t> order(static_cast<size_t>(corpus.size()));
  std::iota(order.begin(), order.end(), 0);
  if (options.shuffle) shuffle(order, rng);
  if (options.like_length) {
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return std::tuple(corpus.targets.length(a), corpus.sources.length(a)) <
             std::tuple(corpus.targets.length(b), corpus.sources.length(b));
    });
  }
  std::vector<std::pair<size_t, size_t>> batches = cut(corpus, options, order);
  if (options.shuffle && options.like_length) shuffle(batches, rng);
  order_.reserve(order.size());
  for (const auto& [begin, end] : batches) {
    order_.insert(order_.end(), order.begin() + static_cast<std::ptrdiff_t>(begin),
                  order.begin() + static_cast<std::ptrdiff_t>(end));
    ends_.push_back(order_.size());
  }
}

std::span<const int64_t> BatchPlan::operator[](int64_t batch) const {
  RAPT_CHECK(batch >= 0 && batch < size(), "batches: expected an index below {}, got {}", size(),
             batch);
  const auto b = static_cast<size_t>(batch);
  return std::span(order_).subspan(ends_[b], ends_[b + 1] - ends_[b]);
}

PairBatch make_batch(const PairCorpus& corpus, std::span<const int64_t> pairs, int32_t start,
                     int32_t end) {
  PairBatch batch;
  for (const int64_t pair : pairs) {
    const auto source = corpus.sources[pair];
    const auto target = corpus.targets[pair];
    batch.source.insert(batch.source.end(), source.begin(), source.end());
    batch.target_in.push_back(start);
    batch.target_in.insert(batch.target_in.end(), target.begin(), target.end());
    batch.target_out.insert(batch.target_out.end(), target.begin(), target.end());
    batch.target_out.push_back(end);
    batch.source_lengths.push_back(static_cast<int64_t>(source.size()));
    batch.target_lengths.push_back(static_cast<int64_t>(target.size()) + 1);
    batch.samples.push_back(corpus.lines[static_cast<size_t>(pair)]);
  }
  return batch;
}

}  // namespace rapt::data
