#include "rapt/train/seq2seq.h"

#include <algorithm>
#include <chrono>

#include "rapt/base/check.h"
#include "rapt/base/memory.h"
#include "rapt/train/memory_check.h"

namespace rapt::train {
namespace {

Tensor ids(const std::vector<int32_t>& values) {
  return Tensor::from(values, {static_cast<int64_t>(values.size())});
}

}  // namespace

Seq2SeqBatch to_tensors(const data::PairBatch& batch) {
  return {ids(batch.source), ids(batch.target_in), ids(batch.target_out),
          Rows::packed(batch.source_lengths, batch.samples),
          Rows::packed(batch.target_lengths, batch.samples)};
}

Loss seq2seq_loss(const models::EncoderDecoder& model, const Seq2SeqBatch& batch,
                  double label_smoothing, const Pass& pass) {
  const nn::Memory memory = model.encode(batch.source, batch.source_rows, pass);
  const Tensor hidden = model.decode(batch.target_in, batch.target_rows, memory, pass);
  return model.loss(hidden, batch.target_out, {.label_smoothing = label_smoothing}, pass);
}

namespace {

using Clock = std::chrono::steady_clock;

// One call of fit(): the loop over epochs and steps.
class Fit {
 public:
  Fit(models::EncoderDecoder& model, const data::PairCorpus& corpus, optim::Optimizer& optimizer,
      const FitOptions& options, Place& place)
      : model_(model), corpus_(corpus), optimizer_(optimizer), options_(options), place_(place) {}

  double run(const std::function<void(const Progress&)>& report) {
    while (place_.epoch <= options_.epochs && !is_over()) {
      const data::BatchPlan plan(corpus_, options_.batches, place_.epoch - 1);
      while (place_.batch < plan.size()) {
        const Progress progress = step(plan);
        if (report) report(progress);
        if (options_.stop && options_.stop()) return mean();
        if (is_over()) return mean();
      }
      if (place_.epoch == options_.epochs) break;  // the place stays at the end of the last epoch
      ++place_.epoch;
      place_.batch = place_.epoch_tokens = 0;
      place_.epoch_sum = 0;
    }
    return mean();
  }

 private:
  bool is_over() const {
    return place_.step >= options_.steps || place_.seconds >= options_.minutes * 60;
  }

  double mean() const {
    return place_.epoch_tokens == 0 ? 0
                                    : place_.epoch_sum / static_cast<double>(place_.epoch_tokens);
  }

  Progress step(const data::BatchPlan& plan) {
    const int64_t micro_batches = std::min(options_.accumulate, plan.size() - place_.batch);
    const double rate = options_.rate(place_.step);
    const StepResult result = try_step(
        micro_batches,
        [&](int64_t micro, const Pass& pass) {
          const Seq2SeqBatch batch =
              to_tensors(data::make_batch(corpus_, plan[place_.batch + micro],
                                          model_.config().start_id, model_.config().end_id));
          return seq2seq_loss(model_, batch, options_.label_smoothing, pass);
        },
        optimizer_, gradients_,
        {rate, options_.seed, static_cast<uint64_t>(place_.step), options_.compute_type,
         options_.recompute});
    count_skips(result);
    place_.batch += micro_batches;
    ++place_.step;
    if (result.spoilt.empty()) {
      place_.epoch_sum += result.loss.sum.item();
      place_.epoch_tokens += result.loss.count;
      place_.tokens += result.loss.count;
    }
    place_.seconds = before_ + std::chrono::duration<double>(Clock::now() - start_).count();
    return progress(plan.size(), result, rate);
  }

  void count_skips(const StepResult& result) {
    if (result.spoilt.empty()) {
      place_.skipped_in_a_row = 0;
      return;
    }
    if (place_.skipped_in_a_row >= options_.max_skips)
      fail_diverged(result.spoilt, static_cast<uint64_t>(place_.step));
    ++place_.skipped;
    ++place_.skipped_in_a_row;
  }

  Progress progress(int64_t batches, const StepResult& result, double rate) const {
    Progress p;
    p.epoch = place_.epoch;
    p.epochs = options_.epochs;
    p.batch = place_.batch;
    p.batches = batches;
    p.step = place_.step;
    p.steps = options_.steps;
    if (options_.epochs != kNoLimit) {  // epochs may differ by a batch
      const auto steps = [&](int64_t n) {
        return (n + options_.accumulate - 1) / options_.accumulate;
      };
      const int64_t left = steps(batches - place_.batch);
      const int64_t later = options_.epochs - place_.epoch;
      if (later < (kNoLimit - place_.step - left) / steps(batches))
        p.steps = std::min(p.steps, place_.step + left + later * steps(batches));
    }
    p.loss = mean();
    p.last_loss = result.loss.mean();
    p.last_tokens = result.loss.count;
    p.rate = rate;
    p.norm = result.norm;
    p.skipped = result.spoilt;
    p.tokens = place_.tokens;
    p.seconds = place_.seconds;
    p.seconds_left = options_.minutes * 60 - p.seconds;
    if (p.steps != kNoLimit) {
      const double a_step = p.seconds / static_cast<double>(p.step);
      p.seconds_left = std::min(p.seconds_left, a_step * static_cast<double>(p.steps - p.step));
    }
    return p;
  }

  models::EncoderDecoder& model_;
  const data::PairCorpus& corpus_;
  optim::Optimizer& optimizer_;
  const FitOptions& options_;
  Place& place_;
  const double before_ = place_.seconds;
  const Clock::time_point start_ = Clock::now();
  Gradients gradients_;
};

}  // namespace

double fit(models::EncoderDecoder& model, const data::PairCorpus& corpus,
           optim::Optimizer& optimizer, const FitOptions& options,
           const std::function<void(const Progress&)>& report, Place& place) {
  RAPT_CHECK(options.epochs >= 0, "fit: expected at least 0 epochs, got {}", options.epochs);
  RAPT_CHECK(options.accumulate >= 1, "fit: expected to accumulate at least 1 batch, got {}",
             options.accumulate);
  RAPT_CHECK(options.rate != nullptr, "fit: expected a learning rate, got none");
  if (options.compute_type == DType::bf16) nn::make_twins(model);
  if (memory_limit() > 0) check_memory(model, corpus, options, optimizer.bytes_to_come());
  return Fit(model, corpus, optimizer, options, place).run(report);
}

double fit(models::EncoderDecoder& model, const data::PairCorpus& corpus,
           optim::Optimizer& optimizer, const FitOptions& options,
           const std::function<void(const Progress&)>& report) {
  Place place;
  return fit(model, corpus, optimizer, options, report, place);
}

}  // namespace rapt::train
