// Batches of sentence pairs: which pairs go together, and what a training step takes.
//
// Sizes: B pairs of a batch, Ns source tokens, Nt target tokens of all its sentences.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rapt/data/pairs.h"

namespace rapt::data {

struct BatchOptions {
  // How many pairs a batch holds, or how many tokens at most (of the source and of the target with
  // its start symbol, together). One of the two; the other stays 0.
  int64_t pairs = 0;
  int64_t tokens = 0;
  // Pairs in a new random order every epoch; else in the order of the corpus.
  bool shuffle = true;
  // Pairs of like length together: less attention is done on long sentences, and batches of a token
  // budget become even. The order of the batches stays random if `shuffle` is set.
  bool like_length = false;
  uint64_t seed = 0;
};

// The tokens that a pair costs: source words, target words and the start symbol.
int64_t tokens_of(const PairCorpus& corpus, int64_t pair);

// The batches of one epoch. They depend on the corpus, the options and the epoch alone, so that a
// run resumes at any batch.
class BatchPlan {
 public:
  // Throws Error: (config) options that contradict each other, (data) a pair over the token budget.
  BatchPlan(const PairCorpus& corpus, const BatchOptions& options, int64_t epoch);

  int64_t size() const { return static_cast<int64_t>(ends_.size()) - 1; }

  // The pairs of a batch, as indices of the corpus.
  std::span<const int64_t> operator[](int64_t batch) const;

 private:
  std::vector<int64_t> order_;
  std::vector<size_t> ends_ = {0};  // batch b is order_[ends_[b]] to order_[ends_[b + 1]]
};

// A batch as a training step takes it: sentences one behind the other, no padding. With teacher
// forcing the decoder reads <s> y1 .. yn and is asked for y1 .. yn </s>.
struct PairBatch {
  std::vector<int32_t> source;          // (Ns)
  std::vector<int32_t> target_in;       // (Nt)
  std::vector<int32_t> target_out;      // (Nt)
  std::vector<int64_t> source_lengths;  // (B), their sum is Ns
  std::vector<int64_t> target_lengths;  // (B), their sum is Nt; the start symbol counts
  std::vector<uint64_t> samples;        // (B): each pair's key in the random numbers of dropout
};

// Gathers pairs of the corpus into a batch. `start` and `end` are ids of the target vocabulary.
PairBatch make_batch(const PairCorpus& corpus, std::span<const int64_t> pairs, int32_t start,
                     int32_t end);

}  // namespace rapt::data
