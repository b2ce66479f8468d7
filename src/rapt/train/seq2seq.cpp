#include "rapt/train/seq2seq.h"

#include <chrono>

#include "rapt/base/check.h"

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

StepResult train_step(const models::EncoderDecoder& model, const Seq2SeqBatch& batch,
                      optim::Optimizer& optimizer, Gradients& gradients, double rate,
                      double label_smoothing, uint64_t seed, uint64_t step,
                      std::optional<DType> compute_type) {
  return take_step(
      [&](const Pass& pass) { return seq2seq_loss(model, batch, label_smoothing, pass); },
      optimizer, gradients, {rate, seed, step, compute_type});
}

double fit(models::EncoderDecoder& model, const data::PairCorpus& corpus,
           optim::Optimizer& optimizer, const FitOptions& options,
           const std::function<void(const Progress&)>& report) {
  RAPT_CHECK(options.epochs >= 0, "fit: expected at least 0 epochs, got {}", options.epochs);
  RAPT_CHECK(options.rate != nullptr, "fit: expected a learning rate, got none");
  if (options.compute_type == DType::bf16) nn::make_twins(model);
  const auto start = std::chrono::steady_clock::now();
  Gradients gradients;
  Progress progress;
  progress.epochs = options.epochs;
  for (progress.epoch = 1; progress.epoch <= options.epochs; ++progress.epoch) {
    const data::BatchPlan plan(corpus, options.batches, progress.epoch - 1);
    progress.batches = plan.size();
    progress.steps = progress.step + (options.epochs - progress.epoch + 1) *
                                         plan.size();  // epochs may differ by a batch
    double sum = 0;
    int64_t count = 0;
    for (progress.batch = 1; progress.batch <= plan.size(); ++progress.batch) {
      const Seq2SeqBatch batch = to_tensors(data::make_batch(
          corpus, plan[progress.batch - 1], model.config().start_id, model.config().end_id));
      progress.rate = options.rate(progress.step);
      const StepResult result =
          train_step(model, batch, optimizer, gradients, progress.rate, options.label_smoothing,
                     options.seed, static_cast<uint64_t>(progress.step), options.compute_type);
      ++progress.step;
      sum += result.loss.sum.item();
      count += result.loss.count;
      progress.tokens += result.loss.count;
      progress.loss = count == 0 ? 0 : sum / static_cast<double>(count);
      progress.last_loss = result.loss.mean();
      progress.seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      if (report) report(progress);
      if (options.stop && options.stop()) return progress.loss;
    }
  }
  return progress.loss;
}

}  // namespace rapt::train
