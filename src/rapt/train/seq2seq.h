// Training an encoder-decoder on sentence pairs.
#pragma once

#include <cstdint>
#include <functional>

#include "rapt/data/batches.h"
#include "rapt/models/encoder_decoder.h"
#include "rapt/train/step.h"

namespace rapt::train {

// A batch as the model takes it: packed ids and their sentences.
struct Seq2SeqBatch {
  Tensor source, target_in, target_out;  // (Ns), (Nt), (Nt) i32
  Rows source_rows, target_rows;
};
Seq2SeqBatch to_tensors(const data::PairBatch& batch);

// Cross-entropy over the target tokens of a batch, padding not among them. Recorded if the pass has
// gradients.
Loss seq2seq_loss(const models::EncoderDecoder& model, const Seq2SeqBatch& batch,
                  double label_smoothing, const Pass& pass);

// One optimizer step on one batch; see take_step.
StepResult train_step(const models::EncoderDecoder& model, const Seq2SeqBatch& batch,
                      optim::Optimizer& optimizer, Gradients& gradients, double rate,
                      double label_smoothing, uint64_t seed, uint64_t step,
                      std::optional<DType> compute_type = {});

struct FitOptions {
  int64_t epochs = 1;
  data::BatchOptions batches;
  double label_smoothing = 0;
  uint64_t seed = 0;
  std::function<double(int64_t step)> rate;  // the learning rate of a step, from 0
  std::function<bool()> stop = {};           // asked after every step: true ends the run there
  std::optional<DType> compute_type{};       // bf16: parameters stay f32; unset: theirs
};

struct Progress {
  int64_t epoch = 0, epochs = 0;   // epoch counts from 1
  int64_t batch = 0, batches = 0;  // of the epoch, from 1
  int64_t step = 0, steps = 0;     // of all, from 1
  double loss = 0;                 // mean over the tokens of the epoch so far
  double last_loss = 0;            // of the batch
  double rate = 0;
  int64_t tokens = 0;  // target tokens since the start
  double seconds = 0;  // since the start
};

// Runs the epochs; `report` is called after every step, and an epoch ends with batch == batches.
// Throws as take_step does. Returns the mean loss of the last epoch (so far, where it stopped).
double fit(models::EncoderDecoder& model, const data::PairCorpus& corpus,
           optim::Optimizer& optimizer, const FitOptions& options,
           const std::function<void(const Progress&)>& report);

}  // namespace rapt::train
