#include "rapt/measure/training.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>

#include "rapt/base/checked.h"
#include "rapt/base/runtime.h"
#include "rapt/measure/machine.h"
#include "rapt/models/checkpoint.h"
#include "rapt/models/safetensors.h"
#include "rapt/optim/optimizer.h"
#include "rapt/train/seq2seq.h"

namespace rapt::measure {
namespace {

using Clock = std::chrono::steady_clock;
using models::EncoderDecoder;
using models::EncoderDecoderConfig;

struct Case {
  EncoderDecoderConfig config;
  double label_smoothing = 0, rate = 0;
  int64_t B = 0, T = 0;  // drawn pairs of T source and T target tokens; 0: the worked example's two
  std::function<std::unique_ptr<optim::Optimizer>(const EncoderDecoder&)> optimizer;
};

Case case_of(const std::string& name) {
  Case c;
  if (name == "toy") {
    c.config = EncoderDecoderConfig::torch(10, 11);
    c.config.start_id = 8;
    c.config.end_id = 9;
    c.rate = 1e-3;
    c.optimizer = [](const EncoderDecoder& model) {
      return optim::make_sgd(nn::parameters(model),
                             {.momentum = 0.99, .common = {.check_finite = false}});
    };
  } else if (name == "small") {
    c.config = EncoderDecoderConfig::torch(8000, 8000);
    c.config.d_model = 256;
    c.config.nhead = 4;
    c.config.dim_feedforward = 1024;
    c.config.num_encoder_layers = c.config.num_decoder_layers = 3;
    c.config.scale_embeddings = true;
    c.config.projection_bias = false;
    c.config.tie_embeddings = models::TieEmbeddings::three;
    c.label_smoothing = 0.1;
    c.rate = 3e-4;
    c.B = 128;
    c.T = 24;
    c.optimizer = [](const EncoderDecoder& model) {
      return optim::make_adamw(
          nn::parameters(model),
          {.common = {.weight_decay = 0.01, .decay_all = true, .check_finite = false}});
    };
  } else {
    fail(ErrorKind::usage, "bench: expected one of toy, small, got \"{}\"", name);
  }
  return c;
}

// A matrix of ids, rows of equal length; zeros at the end of a source are padding and are left out.
struct IdMatrix {
  std::vector<int32_t> ids;
  int64_t B = 0, T = 0;
};

IdMatrix drawn(int64_t B, int64_t T, int64_t V, Rng& rng) {
  IdMatrix m{{}, B, T};
  for (int64_t i = 0; i < B * T; ++i) m.ids.push_back(static_cast<int32_t>(1 + rng.below(V - 1)));
  return m;
}

IdMatrix read_ids(const models::SafetensorsFile& file, const char* name) {
  const Tensor x = file.load(file.at(name), DType::i32);
  RAPT_CHECK(x.rank() == 2, "bench: expected {} (B, T), got {}", name, x.shape().text());
  return {x.to_vector<int32_t>(), x.dim(0), x.dim(1)};
}

data::PairBatch batch_of(const IdMatrix& source, const IdMatrix& target) {
  RAPT_CHECK(source.B == target.B && target.T >= 1,
             "bench: expected as many targets as sources, got {} and {}", target.B, source.B);
  data::PairBatch batch;
  for (int64_t b = 0; b < source.B; ++b) {
    const auto from = source.ids.begin() + b * source.T;
    const auto end = std::find(from, from + source.T, 0);
    batch.source.insert(batch.source.end(), from, end);
    batch.source_lengths.push_back(end - from);
    const auto to = target.ids.begin() + b * target.T;
    batch.target_in.insert(batch.target_in.end(), to, to + target.T - 1);
    batch.target_out.insert(batch.target_out.end(), to + 1, to + target.T);
    batch.target_lengths.push_back(target.T - 1);
    batch.samples.push_back(static_cast<uint64_t>(b));
  }
  return batch;
}

data::PairBatch make_batch(const Case& c, const TrainingOptions& options, Rng& rng) {
  if (!options.init.empty()) {
    const models::SafetensorsFile file(options.init / "batch.safetensors");
    return batch_of(read_ids(file, "source"), read_ids(file, "target"));
  }
  if (c.B == 0) {
    return batch_of({{1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 8, 4, 9, 6, 7, 0}, 2, 8},
                    {{8, 1, 2, 3, 4, 5, 10, 9, 8, 1, 2, 6, 7, 5, 10, 9}, 2, 8});
  }
  return batch_of(drawn(c.B, c.T, c.config.src_vocab_size, rng),
                  drawn(c.B, c.T + 1, c.config.tgt_vocab_size, rng));
}

std::unique_ptr<EncoderDecoder> make_model(const Case& c, const TrainingOptions& options,
                                           Rng& rng) {
  const bool loaded = !options.init.empty();
  auto model = std::make_unique<EncoderDecoder>(c.config, nn::Init{.rng = loaded ? nullptr : &rng});
  if (loaded) {
    models::load_weights(*model, options.init / "weights.safetensors",
                         models::layout(c.config.layout));
  } else if (c.config.tie_embeddings !=
             models::TieEmbeddings::none) {  // tied embeddings of unit variance give huge logits
    Tensor table = nn::parameters(*model).front().value();
    for (int64_t i = 0; i < table.numel(); ++i) table.data<float>()[i] *= 0.02f;
  }
  return model;
}

double pairs(const std::vector<int64_t>& a, const std::vector<int64_t>& b, double share) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += share * static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

double flops_of(const EncoderDecoderConfig& c, const data::PairBatch& batch) {
  return 3 * encoder_decoder_flops(static_cast<int64_t>(batch.source.size()),
                                   static_cast<int64_t>(batch.target_in.size()), c.d_model,
                                   c.dim_feedforward, c.num_encoder_layers, c.num_decoder_layers,
                                   c.tgt_vocab_size,
                                   pairs(batch.source_lengths, batch.source_lengths, 1),
                                   pairs(batch.target_lengths, batch.target_lengths, 0.5),
                                   pairs(batch.target_lengths, batch.source_lengths, 1));
}

}  // namespace

std::vector<std::string> training_cases() { return {"toy", "small"}; }

double encoder_decoder_flops(int64_t source_tokens, int64_t target_tokens, int64_t C, int64_t F,
                             int64_t encoder_layers, int64_t decoder_layers, int64_t V,
                             double source_pairs, double target_pairs, double cross_pairs) {
  const double s = static_cast<double>(source_tokens), t = static_cast<double>(target_tokens),
               c = static_cast<double>(C);
  const double feed_forward = 2.0 * c * static_cast<double>(F), square = c * c;
  const double encoder = s * (4 * square + feed_forward) + 2 * c * source_pairs;
  const double decoder =
      t * (6 * square + feed_forward) + 2 * s * square + 2 * c * (target_pairs + cross_pairs);
  return 2 * (static_cast<double>(encoder_layers) * encoder +
              static_cast<double>(decoder_layers) * decoder + t * c * static_cast<double>(V));
}

TrainingResult run_training(const std::string& name, const TrainingOptions& options) {
  RAPT_CHECK(options.steps >= 1, "bench: expected at least 1 step, got {}", options.steps);
  constexpr int64_t kWarmUp = 3;
  Case c = case_of(name);
  if (options.dropout) c.config.dropout = c.config.position_dropout = *options.dropout;
  TrainingResult result;
  result.name = name;
  result.threads = Runtime::current().threads();
  Rng rng(options.seed);
  const data::PairBatch batch = make_batch(c, options, rng);
  const train::Seq2SeqBatch tensors = train::to_tensors(batch);
  const auto model = make_model(c, options, rng);
  const auto optimizer = c.optimizer(*model);
  Gradients gradients;
  std::vector<double> times, losses;
  for (int64_t step = 0; step < options.steps + kWarmUp; ++step) {
    const auto start = Clock::now();
    const train::StepResult done =
        train::train_step(*model, tensors, *optimizer, gradients, c.rate, c.label_smoothing,
                          options.seed, static_cast<uint64_t>(step));
    if (step >= kWarmUp)
      times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    losses.push_back(done.loss.mean());
  }
  std::sort(times.begin(), times.end());
  const size_t n = times.size();
  const double median = (times[(n - 1) / 2] + times[n / 2]) / 2;
  result.step_ms = median * 1e3;
  result.min_ms = times.front() * 1e3;
  result.max_ms = times.back() * 1e3;
  result.tokens_per_s = static_cast<double>(batch.target_out.size()) / median;
  result.flops_per_s = flops_of(c.config, batch) / median;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  result.rss_mib = usage.ru_maxrss / 1024;
  result.fraction_of_peak = result.flops_per_s / f32_peak(result.threads);
  result.loss.assign(losses.begin(),
                     losses.begin() + std::min<int64_t>(3, static_cast<int64_t>(losses.size())));
  result.loss.push_back(losses.back());
  return result;
}

}  // namespace rapt::measure
