#include "rapt/train/seq2seq.h"

#include <sys/resource.h>

#include "rapt/base/memory.h"
#include "rapt/base/runtime.h"
#include "rapt/decode/greedy.h"
#include "tests/testing/translators.h"

namespace rapt::train {
namespace {

using namespace testing;

// Copies of digits, reversed: something that a small model can learn.
data::PairCorpus reversed_pairs(int64_t count) {
  Rng rng(8);
  data::PairCorpus corpus;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<int32_t> source;
    const int64_t length = 1 + rng.below(4);
    for (int64_t t = 0; t < length; ++t) source.push_back(static_cast<int32_t>(3 + rng.below(4)));
    corpus.add(source, std::vector<int32_t>(source.rbegin(), source.rend()),
               static_cast<uint64_t>(i));
  }
  return corpus;
}

models::EncoderDecoderConfig learning_config() {
  models::EncoderDecoderConfig config = small_config("rapt");
  config.d_model = 32;
  config.nhead = 2;
  config.d_qk = config.d_v = 0;
  config.dropout = config.position_dropout = 0;
  config.dim_feedforward = 64;
  config.num_encoder_layers = config.num_decoder_layers = 1;
  return config;
}

Seq2SeqBatch batch_of(const data::PairCorpus& corpus, int64_t pairs) {
  std::vector<int64_t> which(static_cast<size_t>(pairs));
  for (size_t i = 0; i < which.size(); ++i) which[i] = static_cast<int64_t>(i);
  return to_tensors(data::make_batch(corpus, which, 1, 2));
}

std::vector<Tensor> values(const nn::Module& module) {
  std::vector<Tensor> all;
  for (const NamedParameter& p : nn::parameters(module)) all.push_back(p.value().contiguous_copy());
  return all;
}

TEST(Fit, LearnsToReverse) {
  const data::PairCorpus corpus = reversed_pairs(40);
  models::EncoderDecoder model = make_model(learning_config(), DType::f32);
  const auto optimizer = optim::make_adam(nn::parameters(model));
  std::vector<Progress> seen;
  const double loss = fit(model, corpus, *optimizer,
                          {.epochs = 100,
                           .batches = {.tokens = 200, .seed = 1},
                           .seed = 2,
                           .rate = [](int64_t) { return 3e-3; }},
                          [&](const Progress& progress) { seen.push_back(progress); });
  EXPECT_LT(loss, 0.3);
  EXPECT_GT(seen.front().loss, 1.2);
  EXPECT_EQ(seen.back().epoch, 100);
  EXPECT_EQ(seen.back().batch, seen.back().batches);
  EXPECT_EQ(seen.back().step, static_cast<int64_t>(seen.size()));
  int right = 0;
  for (int64_t i = 0; i < corpus.size(); ++i) {
    const std::vector<std::vector<int32_t>> source = {
        {corpus.sources[i].begin(), corpus.sources[i].end()}};
    const std::vector<int32_t> target(corpus.targets[i].begin(), corpus.targets[i].end());
    right += decode::greedy(model, source).front().ids == target;
  }
  EXPECT_GE(right, 38);
}

TEST(Fit, TheSameRunGivesTheSameBitsOnAnyNumberOfThreads) {
  const data::PairCorpus corpus = reversed_pairs(30);
  std::vector<Tensor> first;
  for (const int threads : {1, 1, 2, 3}) {
    Runtime runtime({.threads = threads, .log = {}});
    const Runtime::Scope scope(runtime);
    models::EncoderDecoder model = make_model(learning_config(), DType::f32);
    const auto optimizer =
        optim::make_adamw(nn::parameters(model), {.common = {.weight_decay = 0.01, .max_norm = 1}});
    fit(model, corpus, *optimizer,
        {.epochs = 4,
         .batches = {.pairs = 7},
         .label_smoothing = 0.1,
         .rate = [](int64_t) { return 1e-3; }},
        {});
    const std::vector<Tensor> now = values(model);
    if (first.empty()) first = now;
    for (size_t i = 0; i < now.size(); ++i)
      EXPECT_TRUE(same_bits(now[i], first[i])) << i << " with " << threads;
  }
}

TEST(Fit, StopsAfterTheStepWhereItIsTold) {
  const data::PairCorpus corpus = reversed_pairs(40);
  const auto steps_of = [&](int64_t epochs, std::function<bool()> stop) {
    models::EncoderDecoder model = make_model(learning_config(), DType::f32);
    const auto optimizer = optim::make_adam(nn::parameters(model));
    FitOptions options{.epochs = epochs,
                       .batches = {.pairs = 10},
                       .rate = [](int64_t) { return 1e-3; },
                       .stop = std::move(stop)};
    fit(model, corpus, *optimizer, options, nullptr);
    return std::pair(optimizer->steps(), values(model));
  };
  int asked = 0;
  const auto [steps, weights] = steps_of(3, [&] { return ++asked == 4; });
  EXPECT_EQ(steps, 4);
  const auto [whole, same] = steps_of(1, nullptr);
  EXPECT_EQ(whole, 4);
  for (size_t i = 0; i < weights.size(); ++i)
    EXPECT_EQ(testing::values_of(weights[i]), testing::values_of(same[i]));
}

TEST(TrainStep, ALossThatIsNotFiniteLeavesTheModelAlone) {
  const data::PairCorpus corpus = reversed_pairs(5);
  models::EncoderDecoder model = make_model(learning_config(), DType::f32);
  Tensor table = nn::parameters(model).front().value();
  for (int64_t i = 0; i < table.numel(); ++i) table.data<float>()[i] = NAN;
  const std::vector<Tensor> before = values(model);
  const auto optimizer = optim::make_adam(nn::parameters(model));
  Gradients gradients;
  try {
    train_step(model, batch_of(corpus, 5), *optimizer, gradients, 1e-3, 0, 0, 0);
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::diverged);
  }
  const std::vector<Tensor> after = values(model);
  for (size_t i = 0; i < after.size(); ++i) EXPECT_TRUE(same_bits(after[i], before[i]));
  EXPECT_EQ(optimizer->steps(), 0);
}

TEST(TrainStep, R13_ABatchWithoutTargetsChangesNothing) {
  models::EncoderDecoder model = make_model(learning_config(), DType::f32);
  const std::vector<Tensor> before = values(model);
  const auto optimizer = optim::make_adam(nn::parameters(model));
  Gradients gradients;
  const Seq2SeqBatch nothing{ids({3}), ids({}), ids({}), Rows::packed({1}), Rows::packed({0})};
  const StepResult result = train_step(model, nothing, *optimizer, gradients, 1e-3, 0.1, 0, 0);
  EXPECT_FALSE(result.updated);
  EXPECT_EQ(result.loss.count, 0);
  EXPECT_EQ(result.loss.mean(), 0);
  const std::vector<Tensor> after = values(model);
  for (size_t i = 0; i < after.size(); ++i) EXPECT_TRUE(same_bits(after[i], before[i]));
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

int64_t minor_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

TEST(TrainStep, NothingIsMappedNorTouchedForTheFirstTimeAfterTheFirstSteps) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer touches memory of its own";
  const data::PairCorpus corpus = reversed_pairs(64);
  models::EncoderDecoderConfig config = learning_config();
  config.d_model = 128;
  config.dim_feedforward = 512;
  models::EncoderDecoder model = make_model(config, DType::f32);
  const auto optimizer = optim::make_adam(nn::parameters(model));
  Gradients gradients;
  const Seq2SeqBatch batch = batch_of(corpus, 64);
  int64_t mapped = 0, faults = 0;
  for (uint64_t step = 1; step <= 15; ++step) {
    train_step(model, batch, *optimizer, gradients, 1e-3, 0.1, 0, step);
    if (step == 5) {
      mapped = memory_use().mapped;
      faults = minor_faults();
    }
  }
  EXPECT_EQ(memory_use().mapped, mapped);
  EXPECT_LE(minor_faults() - faults, 64);
}

}  // namespace
}  // namespace rapt::train
