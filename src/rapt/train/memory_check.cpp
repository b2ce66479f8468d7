#include "rapt/train/memory_check.h"

#include <algorithm>
#include <numeric>

#include "rapt/base/check.h"
#include "rapt/base/memory.h"
#include "rapt/tensor/tape.h"

namespace rapt::train {
namespace {

using Pairs = std::span<const int64_t>;

int64_t tokens_of_all(const data::PairCorpus& corpus, Pairs pairs) {
  return std::accumulate(pairs.begin(), pairs.end(), int64_t{0}, [&](int64_t sum, int64_t pair) {
    return sum + data::tokens_of(corpus, pair);
  });
}

Pairs largest_batch(const data::PairCorpus& corpus, const data::BatchPlan& plan) {
  Pairs largest;
  int64_t most = -1;
  for (int64_t i = 0; i < plan.size(); ++i) {
    const int64_t tokens = tokens_of_all(corpus, plan[i]);
    if (tokens <= most) continue;
    most = tokens;
    largest = plan[i];
  }
  return largest;
}

// Whether there is memory for a batch, and for so many bytes beside it.
bool fits(const models::EncoderDecoder& model, const data::PairCorpus& corpus, Pairs pairs,
          const FitOptions& options, int64_t bytes) {
  Gradients gradients;
  const Pass pass({.training = true,
                   .seed = options.seed,
                   .gradients = &gradients,
                   .compute_type = options.compute_type,
                   .recompute = options.recompute});
  try {
    const auto beside = allocate_block(static_cast<size_t>(bytes));
    const Seq2SeqBatch batch =
        to_tensors(data::make_batch(corpus, pairs, model.config().start_id, model.config().end_id));
    const Loss loss = seq2seq_loss(model, batch, options.label_smoothing, pass);
    if (loss.count > 0) backward(loss.sum);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::memory) throw;
    return false;
  }
  return true;
}

}  // namespace

void check_memory(const models::EncoderDecoder& model, const data::PairCorpus& corpus,
                  const FitOptions& options, int64_t bytes_to_come) {
  // Batches of other lengths want blocks of other sizes, and which thread needs how much scratch
  // differs from run to run. What is proposed has to pass the same test, so it leaves more.
  const int64_t spare = memory_limit() / 16;
  const data::BatchPlan plan(corpus, options.batches, 0);
  const Pairs largest = largest_batch(corpus, plan);
  if (largest.empty() || fits(model, corpus, largest, options, bytes_to_come + spare))
    return release_unused_memory();
  const auto proposed = [&](size_t count) {
    return fits(model, corpus, largest.first(count), options, bytes_to_come + 2 * spare);
  };
  size_t count = largest.size() / 2;
  while (count > 0 && !proposed(count)) count /= 2;
  const double limit = static_cast<double>(memory_limit()) / (1 << 20);
  const int64_t asked = tokens_of_all(corpus, largest);
  const char* const less = options.recompute ? "" : ", and less is needed with --recompute";
  if (count == 0) {
    fail(
        ErrorKind::memory,
        "training: no batch fits in the limit of {:.1f} MiB beside {:.1f} MiB of parameters, their "
        "gradients and the optimizer's state; raise the limit or make the model smaller",
        limit, static_cast<double>(memory_use().in_use) / (1 << 20));
  }
  fail(ErrorKind::memory,
       "training: a batch of {} tokens does not fit in the limit of {:.1f} MiB; one of {} does "
       "(--batch-tokens){}",
       asked, limit, tokens_of_all(corpus, largest.first(count)), less);
}

}  // namespace rapt::train
