// Training an encoder-decoder on sentence pairs.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>

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

inline constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

struct FitOptions {
  // What ends a run, whichever comes first.
  int64_t epochs = 1;
  int64_t steps = kNoLimit;
  double minutes = std::numeric_limits<double>::infinity();

  data::BatchOptions batches{};
  int64_t accumulate = 1;  // batches of a step; the last step of an epoch may have fewer
  double label_smoothing = 0;
  uint64_t seed = 0;
  std::function<double(int64_t step)> rate{};  // the learning rate of a step, from 0
  std::function<bool()> stop{};                // asked after every step: true ends the run there
  std::optional<DType> compute_type{};         // bf16: parameters stay f32; unset: theirs
  bool recompute = false;                      // layers again in the backward pass: less memory
  // Steps in a row that may be left out because a loss or gradient was not finite.
  int64_t max_skips = 0;
};

// Where a run stands, between two steps. With the weights and the optimizer's state it decides all
// that follows: batches and random numbers are functions of it.
struct Place {
  int64_t epoch = 1;         // from 1
  int64_t batch = 0;         // batches of the epoch that are done
  int64_t step = 0;          // steps that are done
  int64_t tokens = 0;        // target tokens of all of them
  double epoch_sum = 0;      // of the losses of the epoch so far
  int64_t epoch_tokens = 0;  // that they count
  double seconds = 0;
  int64_t skipped = 0, skipped_in_a_row = 0;  // steps that were left out
};

struct Progress {
  int64_t epoch = 0, epochs = 0;   // epoch counts from 1; epochs may be kNoLimit
  int64_t batch = 0, batches = 0;  // of the epoch, from 1
  int64_t step = 0, steps = 0;     // of all, from 1; steps may be kNoLimit
  double loss = 0;                 // mean over the tokens of the epoch so far
  double last_loss = 0;            // of the step
  int64_t last_tokens = 0;         // target tokens of the step
  double rate = 0;
  double norm = 0;          // of the step's gradient before clipping; NaN where it was not computed
  std::string skipped{};    // why the step was left out; empty: it was not
  int64_t tokens = 0;       // target tokens since the start
  double seconds = 0;       // since the start
  double seconds_left = 0;  // estimated; infinity where nothing is known
};

// Runs what is left of the epochs from `place` on, and keeps it; `report` is called after every
// step, and an epoch ends with batch == batches. Throws Error (diverged) where more than max_skips
// steps in a row would be left out. Returns the mean loss of the last epoch (so far, where it
// stopped).
double fit(models::EncoderDecoder& model, const data::PairCorpus& corpus,
           optim::Optimizer& optimizer, const FitOptions& options,
           const std::function<void(const Progress&)>& report, Place& place);

// The same from the start.
double fit(models::EncoderDecoder& model, const data::PairCorpus& corpus,
           optim::Optimizer& optimizer, const FitOptions& options,
           const std::function<void(const Progress&)>& report);

}  // namespace rapt::train
