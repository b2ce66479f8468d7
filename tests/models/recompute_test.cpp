// Layers that are computed again in the backward pass.
#include "rapt/base/memory.h"
#include "rapt/models/language_model.h"
#include "rapt/nn/encoder.h"
#include "rapt/ops/cross_entropy.h"
#include "tests/testing/modules.h"
#include "tests/testing/translators.h"

namespace rapt::models {
namespace {

using namespace testing;

EncoderDecoderConfig config_of(const std::string& layout) {
  EncoderDecoderConfig config = small_config(layout);
  config.num_encoder_layers = 2;
  config.num_decoder_layers = 3;
  config.dropout = 0.1;
  return config;
}

struct Computed {
  DType parameters;
  std::optional<DType> compute_type;
};

// The loss, then every parameter's gradient.
std::vector<std::pair<std::string, Tensor>> step(const EncoderDecoder& model,
                                                 const Computed& computed, bool recompute,
                                                 AttentionCapture* capture = nullptr) {
  const SmallBatch batch = small_batch();
  Gradients gradients;
  const Pass pass({.training = true,
                   .seed = 5,
                   .step = 3,
                   .gradients = &gradients,
                   .capture = capture,
                   .compute_type = computed.compute_type,
                   .recompute = recompute});
  const Loss loss = cross_entropy(
      model.forward(batch.source, batch.source_rows, batch.target, batch.target_rows, pass),
      batch.labels);
  backward(loss.sum);
  auto all = all_gradients(model, gradients);
  all.emplace_back("loss", loss.sum.detach());
  return all;
}

void expect_same_bits(const std::vector<std::pair<std::string, Tensor>>& got,
                      const std::vector<std::pair<std::string, Tensor>>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_TRUE(got[i].second.defined()) << want[i].first;
    EXPECT_TRUE(same_bits(got[i].second, want[i].second)) << want[i].first;
  }
}

class Recompute : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Layouts, Recompute, ::testing::Values("hand_built", "torch", "rapt"));

TEST_P(Recompute, GradientsHaveTheSameBits) {
  for (const Computed& computed :
       {Computed{DType::f32, {}}, Computed{DType::f64, {}}, Computed{DType::f32, DType::bf16}}) {
    const EncoderDecoder model = make_model(config_of(GetParam()), computed.parameters);
    if (computed.compute_type) nn::make_twins(model);
    expect_same_bits(step(model, computed, true), step(model, computed, false));
  }
}

TEST_P(Recompute, WeightsCanBeCapturedBeside) {
  const EncoderDecoder model = make_model(config_of(GetParam()), DType::f64);
  AttentionCapture plain, again;
  const auto want = step(model, {DType::f64, {}}, false, &plain);
  expect_same_bits(step(model, {DType::f64, {}}, true, &again), want);
  ASSERT_EQ(again.entries.size(), size_t{2 + 2 * 3});
  ASSERT_EQ(plain.entries.size(), again.entries.size());
  for (size_t i = 0; i < plain.entries.size(); ++i) {
    EXPECT_EQ(again.entries[i].path, plain.entries[i].path);
    EXPECT_TRUE(same_bits(again.entries[i].weights, plain.entries[i].weights));
  }
}

// Gradients go through a layer to all that it was given, not to its input alone.
TEST(RecomputedEncoder, ABiasAndTheInputHaveTheirGradients) {
  Rng rng(2);
  const nn::Encoder encoder({.d_model = 8, .nhead = 2, .dim_feedforward = 12, .dropout = 0.2}, 3,
                            true, {.rng = &rng, .dtype = DType::f64});
  const Rows rows = Rows::packed({5, 5});
  std::vector<Tensor> first;
  for (const bool recompute : {false, true}) {
    Gradients gradients;
    const Tensor x = gradients.watch(random_tensor({10, 8}, 1)),
                 bias = gradients.watch(random_tensor({5, 5}, 2));
    const Pass pass({.training = true, .gradients = &gradients, .recompute = recompute});
    const Tensor y = encoder.forward(x, rows, {Mask::causal(), ScoreBias(bias)}, pass);
    backward(y, random_tensor({10, 8}, 3));
    std::vector<Tensor> now = {gradients.of(x), gradients.of(bias), y.detach()};
    for (const auto& [name, gradient] : all_gradients(encoder, gradients)) now.push_back(gradient);
    if (!recompute) first = now;
    for (size_t i = 0; i < now.size(); ++i) EXPECT_TRUE(same_bits(now[i], first[i])) << i;
  }
}

TEST(RecomputedLanguageModel, KeepsAFractionForTheBackward) {
  LanguageModelConfig config;
  config.vocab_size = 11;
  config.d_model = 64;
  config.nhead = 4;
  config.dim_feedforward = 256;
  config.num_layers = 6;
  config.max_len = 64;
  Rng rng(1);
  const LanguageModel model(config, {.rng = &rng});
  std::vector<int32_t> words(512);
  for (size_t i = 0; i < words.size(); ++i) words[i] = static_cast<int32_t>(i % 11);
  const Tensor input = ids(words);
  const Rows rows = Rows::packed(std::vector<int64_t>(8, 64));
  int64_t kept[2] = {};
  std::vector<std::pair<std::string, Tensor>> all[2];
  for (const bool recompute : {false, true}) {
    Gradients gradients;
    const Pass pass({.training = true, .gradients = &gradients, .recompute = recompute});
    const int64_t before = memory_use().in_use;
    const Tensor hidden = model.forward(input, rows, pass);
    kept[recompute] = memory_use().in_use - before;
    const Loss loss = model.loss(hidden, input, {}, pass);
    backward(loss.sum);
    all[recompute] = all_gradients(model, gradients);
  }
  EXPECT_LT(kept[1], kept[0] / 6);
  expect_same_bits(all[1], all[0]);
}

}  // namespace
}  // namespace rapt::models
