#include "rapt/measure/decoding.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <span>
#include <vector>

#include "rapt/base/check.h"
#include "rapt/base/memory.h"
#include "rapt/base/runtime.h"
#include "rapt/decode/beam.h"
#include "rapt/decode/greedy.h"
#include "rapt/measure/machine.h"
#include "rapt/measure/training_case.h"

namespace rapt::measure {
namespace {

using Clock = std::chrono::steady_clock;
using models::EncoderDecoder;
using models::EncoderDecoderConfig;

constexpr int64_t kSources = 96, kShortest = 8, kLongest = 40, kNewTokens = 28, kWords = 32000;

EncoderDecoderConfig base() {
  EncoderDecoderConfig config = EncoderDecoderConfig::torch(kWords, kWords);
  config.scale_embeddings = true;
  config.final_norm = false;
  config.max_len = 512;
  return config;
}

// With random weights, but for the bias of the end token.
EncoderDecoder endless_model(Rng& rng) {
  EncoderDecoder model(base(), nn::Init{.rng = &rng});
  for (const NamedParameter& p : nn::parameters(model)) {
    if (p.name != "projection.bias") continue;
    Tensor bias = p.value();
    bias.data<float>()[model.config().end_id] = -1e9f;
  }
  return model;
}

using Sentences = std::vector<std::vector<int32_t>>;

// From the longest to the shortest.
Sentences draw_sources(Rng& rng) {
  Sentences sources(kSources);
  for (std::vector<int32_t>& source : sources) {
    source.resize(static_cast<size_t>(kShortest + rng.below(kLongest - kShortest + 1)));
    for (int32_t& id : source) id = static_cast<int32_t>(3 + rng.below(kWords - 3));
  }
  std::stable_sort(sources.begin(), sources.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  return sources;
}

void decode(const EncoderDecoder& model, std::span<const std::vector<int32_t>> sources,
            int64_t beam, int64_t length) {
  const auto expect_length = [&](const std::vector<int32_t>& ids) {
    RAPT_ASSERT(static_cast<int64_t>(ids.size()) == length);
  };
  if (beam == 1) {
    for (const decode::Decoded& d : decode::greedy(model, sources, {.max_length = length}))
      expect_length(d.ids);
  } else {
    for (const auto& best :
         decode::beam_search(model, sources, {.beam = beam, .max_length = length}))
      expect_length(best.front().ids);
  }
}

double seconds_of(const std::function<void()>& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double>& times) {
  std::sort(times.begin(), times.end());
  return (times[(times.size() - 1) / 2] + times[times.size() / 2]) / 2;
}

// Of all sources. The first step has one hypothesis for each, the others have `beam`.
double flops_of(const EncoderDecoderConfig& c, const Sentences& sources, int64_t beam) {
  const double C = static_cast<double>(c.d_model), K = static_cast<double>(beam),
               T = static_cast<double>(kNewTokens), steps = 1 + K * (T - 1);
  double tokens = 0, squares = 0;
  for (const auto& source : sources) {
    const auto length = static_cast<double>(source.size());
    tokens += length;
    squares += length * length;
  }
  const double rows = steps * static_cast<double>(sources.size());
  const double seen = static_cast<double>(sources.size()) * (1 + K * (T * (T + 1) / 2 - 1));
  const double encoder = layer_flops(tokens, squares, c.d_model, c.dim_feedforward);
  const double cross = 2 * (2 * (tokens + rows) * C * C + 2 * C * tokens * steps);
  const double decoder = layer_flops(rows, seen, c.d_model, c.dim_feedforward) + cross;
  return static_cast<double>(c.num_encoder_layers) * encoder +
         static_cast<double>(c.num_decoder_layers) * decoder +
         2 * rows * C * static_cast<double>(c.tgt_vocab_size);
}

double peak_of(DecodingType type, int threads) {
  switch (type) {
    case DecodingType::bf16:
      return bf16_peak(threads);
    case DecodingType::int8:
      return int8_peak(threads);
    case DecodingType::f32:
      break;
  }
  return f32_peak(threads);
}

// Forgets the peak of the memory so far, where the system can: what building the model took.
void forget_peak_memory() {
  release_unused_memory();
  std::ofstream("/proc/self/clear_refs") << "5";
}

}  // namespace

DecodingResult run_decoding(const DecodingOptions& options) {
  for (const auto& [name, value] :
       {std::pair("beam", options.beam), {"batch", options.batch}, {"runs", options.runs}}) {
    if (value < 1)
      fail(ErrorKind::usage, "bench translate: expected {} of at least 1, got {}", name, value);
  }
  Rng rng(options.seed);
  EncoderDecoder model = endless_model(rng);
  if (options.type == DecodingType::bf16) model.make_bf16();
  if (options.type == DecodingType::int8) model.make_int8();
  const Sentences sources = draw_sources(rng);
  forget_peak_memory();
  const std::span all(sources);
  const auto batch = static_cast<size_t>(std::min(options.batch, kSources));
  const auto run = [&] {
    for (size_t i = 0; i < all.size(); i += batch)
      decode(model, all.subspan(i, std::min(batch, all.size() - i)), options.beam, kNewTokens);
  };
  run();
  std::vector<double> times, first;
  for (int64_t i = 0; i < options.runs; ++i) times.push_back(seconds_of(run));
  for (size_t i = 0; i < 5; ++i) {
    const size_t from = i * batch % (all.size() - batch + 1);
    first.push_back(seconds_of([&] { decode(model, all.subspan(from, batch), options.beam, 1); }));
  }
  DecodingResult result;
  result.threads = Runtime::current().threads();
  const double taken = median(times), tokens = static_cast<double>(kSources * kNewTokens);
  result.run_ms = taken * 1e3;
  result.min_ms = times.front() * 1e3;
  result.max_ms = times.back() * 1e3;
  result.tokens_per_s = tokens / taken;
  result.least = tokens / times.back();
  result.most = tokens / times.front();
  result.first_token_ms = median(first) * 1e3;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  result.rss_mib = usage.ru_maxrss / 1024;
  result.flops_per_s = flops_of(model.config(), sources, options.beam) / taken;
  result.fraction_of_peak = result.flops_per_s / peak_of(options.type, result.threads);
  return result;
}

}  // namespace rapt::measure
