#include "rapt/train/seq2seq.h"

#include <sys/resource.h>

#include "rapt/base/memory.h"
#include "rapt/base/runtime.h"
#include "rapt/decode/greedy.h"
#include "tests/testing/translators.h"
#include "tests/train/reversed_pairs.h"

namespace rapt::train {
namespace {

using namespace testing;

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

StepResult train_step(const models::EncoderDecoder& model, const Seq2SeqBatch& batch,
                      optim::Optimizer& optimizer, Gradients& gradients, double label_smoothing,
                      uint64_t step) {
  return take_step(
      [&](const Pass& pass) { return seq2seq_loss(model, batch, label_smoothing, pass); },
      optimizer, gradients, {.rate = 1e-3, .step = step});
}

std::vector<float> values_as_float(const Tensor& x) {
  return {x.data<float>(), x.data<float>() + x.numel()};
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
    train_step(model, batch_of(corpus, 5), *optimizer, gradients, 0, 0);
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
  const StepResult result = train_step(model, nothing, *optimizer, gradients, 0.1, 0);
  EXPECT_FALSE(result.updated);
  EXPECT_EQ(result.loss.count, 0);
  EXPECT_EQ(result.loss.mean(), 0);
  const std::vector<Tensor> after = values(model);
  for (size_t i = 0; i < after.size(); ++i) EXPECT_TRUE(same_bits(after[i], before[i]));
}

// The gradients of a step, before an optimizer that does nothing.
std::vector<std::vector<float>> gradients_of(const models::EncoderDecoder& model,
                                             const std::vector<Seq2SeqBatch>& batches) {
  const auto optimizer = optim::make_sgd(nn::parameters(model));
  Gradients gradients;
  const StepResult result =
      try_step(static_cast<int64_t>(batches.size()),
               [&](int64_t micro, const Pass& pass) {
                 return seq2seq_loss(model, batches[static_cast<size_t>(micro)], 0.1, pass);
               },
               *optimizer, gradients, {.rate = 0, .seed = 3, .step = 4});
  EXPECT_TRUE(result.updated);
  std::vector<std::vector<float>> all;
  for (const NamedParameter& p : nn::parameters(model)) {
    if (p.begin == 0) all.push_back(values_as_float(gradients.of(p.parameter)));
  }
  all.push_back({static_cast<float>(result.loss.sum.item()), static_cast<float>(result.loss.count),
                 static_cast<float>(result.norm)});
  return all;
}

TEST(TrainStep, R16_AccumulatedGradientsAreThoseOfTheLargeBatch) {
  data::PairCorpus corpus = reversed_pairs(12);
  corpus.add(std::vector<int32_t>(9, 4), std::vector<int32_t>(10, 5), 12);  // one long pair
  models::EncoderDecoderConfig config = learning_config();
  config.dropout = config.position_dropout = 0.1;  // by sentence: the same masks in any batch
  const models::EncoderDecoder model = make_model(config, DType::f32);
  const auto part = [&](std::vector<int64_t> pairs) {
    return to_tensors(data::make_batch(corpus, pairs, 1, 2));
  };
  const Seq2SeqBatch nothing{ids({3}), ids({}), ids({}), Rows::packed({1}), Rows::packed({0})};
  const auto whole = gradients_of(model, {part({0, 1, 2, 3, 4, 5, 6, 12})});
  const auto parts =
      gradients_of(model, {part({0, 1, 2, 3, 4}), nothing, part({5, 6}), part({12})});
  ASSERT_EQ(parts.size(), whole.size());
  for (size_t i = 0; i < whole.size(); ++i)
    EXPECT_LE((relative_difference<float, float>(parts[i], whole[i])), 1e-5) << i;
}

TEST(Fit, R17_ABadStepIsLeftOutAndARowOfThemEndsTheRun) {
  const data::PairCorpus corpus = reversed_pairs(20);
  models::EncoderDecoder model = make_model(learning_config(), DType::f32);
  const auto optimizer = optim::make_adam(nn::parameters(model));
  Tensor table = nn::parameters(model).front().value();
  const float kept = table.data<float>()[3 * 32];
  std::vector<std::string> skipped;
  Place place;
  const auto run = [&](int64_t max_skips, int64_t bad_steps) {
    place = {};
    skipped.clear();
    int64_t step = 0;
    table.data<float>()[3 * 32] = bad_steps > 0 ? NAN : kept;  // a weight of the word 3
    fit(
        model, corpus, *optimizer,
        {.epochs = 1,
         .batches = {.pairs = 20},
         .rate = [](int64_t) { return 0.0; },
         .max_skips = max_skips},
        [&](const Progress& p) {
          skipped.push_back(p.skipped);
          if (++step == bad_steps) table.data<float>()[3 * 32] = kept;
        },
        place);
  };
  run(0, 0);
  EXPECT_EQ(skipped, std::vector<std::string>{""});
  const std::vector<Tensor> before = values(model);
  const int64_t steps = optimizer->steps();
  run(1, 1);
  EXPECT_EQ(skipped, std::vector<std::string>{"the loss"});
  EXPECT_EQ(place.skipped, 1);
  EXPECT_EQ(place.tokens, 0);
  EXPECT_EQ(optimizer->steps(), steps);
  const std::vector<Tensor> after = values(model);
  for (size_t i = 0; i < after.size(); ++i) EXPECT_TRUE(same_bits(after[i], before[i]));
  try {
    run(0, 9);
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::diverged);
  }
}

TEST(Fit, AGoodStepEndsARowOfBadOnes) {
  const data::PairCorpus corpus = reversed_pairs(20);
  models::EncoderDecoder model = make_model(learning_config(), DType::f32);
  const auto optimizer = optim::make_adam(nn::parameters(model));
  Tensor table = nn::parameters(model).front().value();
  const std::vector<float> good(table.data<float>(), table.data<float>() + table.numel());
  Place place;
  int64_t step = 0;
  const auto set = [&](bool bad) {
    for (int64_t i = 0; i < table.numel(); ++i)
      table.data<float>()[i] = bad ? NAN : good[static_cast<size_t>(i)];
  };
  set(true);
  fit(
      model, corpus, *optimizer,
      {.epochs = 2, .batches = {.pairs = 4}, .rate = [](int64_t) { return 0.0; }, .max_skips = 2},
      [&](const Progress&) { set(++step % 3 != 2); }, place);  // bad, bad, good, bad, bad, ...
  EXPECT_EQ(place.step, 10);
  EXPECT_EQ(place.skipped, 7);
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
    train_step(model, batch, *optimizer, gradients, 0.1, step);
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
