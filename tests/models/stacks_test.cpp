// Models of one stack: language models and the Vision Transformer.
#include "rapt/models/language_model.h"
#include "rapt/models/vision_transformer.h"
#include "rapt/ops/cross_entropy.h"
#include "tests/testing/modules.h"
#include "tests/testing/tensors.h"

namespace rapt::models {
namespace {

using testing::check_first_weights;
using testing::check_module;
using testing::difference;
using testing::error_of;
using testing::ids;
using testing::random_tensor;
using testing::same_bits;
using testing::values_of;

LanguageModelConfig tiny(bool causal) {
  LanguageModelConfig config;
  config.vocab_size = 7;
  config.d_model = 6;
  config.nhead = 2;
  config.dim_feedforward = 5;
  config.num_layers = 2;
  config.max_len = 4;
  config.causal = causal;
  config.activation_dropout = 0.1;
  return config;
}

const Rows kRows = Rows::packed({3, 1, 4});
const Tensor kIds = ids({1, 2, 3, 6, 0, 5, 5, 1});
const Tensor kTargets = ids({2, 3, -100, 1, 5, 5, 1, 0});

TEST(LanguageModel, EveryParameterHasItsGradient) {
  for (const bool causal : {false, true}) {
    Rng rng(1);
    const LanguageModel model(tiny(causal), {.rng = &rng, .dtype = DType::f64});
    EXPECT_TRUE(
        check_module(model,
                     [&](const Pass& pass) {
                       return model.loss(model.forward(kIds, kRows, pass), kTargets, {}, pass).sum;
                     },
                     {.pass = {.training = true, .seed = 3}}));
  }
}

TEST(LanguageModel, TheLossIsThatOfTheLogits) {
  Rng rng(1);
  const LanguageModel model(tiny(true), {.rng = &rng, .dtype = DType::f64});
  const Pass pass;
  const Tensor hidden = model.forward(kIds, kRows, pass);
  const Loss loss = model.loss(hidden, kTargets, {}, pass);
  EXPECT_EQ(loss.count, 7);
  EXPECT_NEAR(loss.sum.item(), cross_entropy(model.logits(hidden, pass), kTargets).sum.item(),
              1e-12);
}

TEST(LanguageModel, OnlyACausalOneDoesNotSeeWhatIsLater) {
  Tensor changed = kIds.contiguous_copy();
  changed.data<int32_t>()[7] = 2;  // the last token of the last sentence
  for (const bool causal : {false, true}) {
    Rng rng(1);
    const LanguageModel model(tiny(causal), {.rng = &rng, .dtype = DType::f64});
    const Tensor a = model.forward(kIds, kRows, Pass()), b = model.forward(changed, kRows, Pass());
    EXPECT_TRUE(same_bits(a.rows(0, 4), b.rows(0, 4)));
    EXPECT_EQ(same_bits(a.rows(4, 3), b.rows(4, 3)), causal);
    EXPECT_FALSE(same_bits(a.rows(7, 1), b.rows(7, 1)));
  }
}

// pytorch/pytorch#86274
TEST(LanguageModel, R11_LayersStartWithWeightsOfTheirOwn) {
  EXPECT_TRUE(check_first_weights([](Rng& rng) {
    return std::make_unique<LanguageModel>(tiny(true), nn::Init{.rng = &rng, .dtype = DType::f64});
  }));
}

// pytorch/pytorch#106700
TEST(LanguageModel, R09_HeadsThatCannotBeAreRefused) {
  for (const int64_t nhead : {0, -1, 4, 12}) {
    LanguageModelConfig config = tiny(true);
    config.nhead = nhead;
    EXPECT_NE(error_of([&] { LanguageModel(config, {}); }).find("nhead"), std::string::npos);
  }
  LanguageModelConfig config = tiny(true);
  config.d_model = 0;
  EXPECT_EQ(error_of([&] { LanguageModel(config, {}); }), "d_model: expected at least 1, got 0");
}

// pytorch/pytorch#27968
TEST(LanguageModel, R03_EmptySentencesChangeNobody) {
  Rng rng(1);
  const LanguageModel model(tiny(true), {.rng = &rng, .dtype = DType::f64});
  const Tensor with = model.forward(kIds, Rows::packed({3, 0, 1, 4, 0}), Pass());
  EXPECT_TRUE(same_bits(with, model.forward(kIds, kRows, Pass())));
  for (const Rows& rows : {Rows::packed({0, 0}), Rows::packed(std::vector<int64_t>{})})
    EXPECT_EQ(model.forward(ids({}), rows, Pass()).shape(), (Shape{0, 6}));
}

TEST(LanguageModel, SaysWhatCannotBe) {
  const auto error = [](auto change) {
    LanguageModelConfig config = tiny(true);
    change(config);
    return error_of([&] { config.check(); });
  };
  EXPECT_EQ(error([](auto& c) { c.nhead = 4; }), "nhead 4 does not divide d_model 6; 3 and 6 do");
  EXPECT_EQ(error([](auto& c) { c.nhead = 8; }), "nhead 8 does not divide d_model 6; 6 does");
  EXPECT_EQ(error([](auto& c) { c.vocab_size = 0; }), "vocab_size: expected at least 1, got 0");
  EXPECT_EQ(error([](auto& c) { c.dropout = 1; }), "dropout: expected a number in [0, 1), got 1");
}

VisionTransformerConfig tiny_image() {
  VisionTransformerConfig config;
  config.image_size = 4;
  config.patch_size = 2;
  config.channels = 2;
  config.num_classes = 3;
  config.d_model = 6;
  config.nhead = 2;
  config.dim_feedforward = 5;
  config.num_layers = 1;
  config.dropout = 0.2;
  return config;
}

TEST(VisionTransformer, EveryParameterHasItsGradient) {
  Rng rng(1);
  const VisionTransformer model(tiny_image(), {.rng = &rng, .dtype = DType::f64});
  const Tensor pixels = random_tensor({3, 2, 4, 4}, 2);
  EXPECT_TRUE(check_module(model, [&](const Pass& pass) { return model.forward(pixels, pass); },
                           {.pass = {.training = true, .seed = 3}}));
  EXPECT_EQ(model.forward(pixels, Pass()).shape(), (Shape{3, 3}));
}

// pytorch/pytorch#86274
TEST(VisionTransformer, R11_LayersStartWithWeightsOfTheirOwn) {
  EXPECT_TRUE(check_first_weights([](Rng& rng) {
    VisionTransformerConfig config = tiny_image();
    config.num_layers = 4;
    return std::make_unique<VisionTransformer>(config, nn::Init{.rng = &rng, .dtype = DType::f64});
  }));
}

// pytorch/pytorch#106700
TEST(VisionTransformer, R09_HeadsThatCannotBeAreRefused) {
  for (const int64_t nhead : {0, -1, 4, 12}) {
    VisionTransformerConfig config = tiny_image();
    config.nhead = nhead;
    EXPECT_NE(error_of([&] { VisionTransformer(config, {}); }).find("nhead"), std::string::npos);
  }
}

// pytorch/pytorch#27968
TEST(VisionTransformer, R03_NoImagesGiveNoScores) {
  Rng rng(1);
  const VisionTransformer model(tiny_image(), {.rng = &rng, .dtype = DType::f64});
  EXPECT_EQ(model.forward(Tensor::zeros({0, 2, 4, 4}, DType::f64), Pass()).shape(), (Shape{0, 3}));
}

TEST(VisionTransformer, AnImageDoesNotDependOnItsMates) {
  Rng rng(1);
  const VisionTransformer model(tiny_image(), {.rng = &rng, .dtype = DType::f64});
  const Tensor pixels = random_tensor({3, 2, 4, 4}, 2);
  EXPECT_LE(difference(model.forward(pixels.rows(1, 1), Pass()),
                       model.forward(pixels, Pass()).rows(1, 1)),
            1e-12);
}

TEST(VisionTransformer, ComputesInBf16BesideParametersOfF32) {
  Rng rng(1);
  const VisionTransformer model(tiny_image(), {.rng = &rng, .dtype = DType::f32});
  nn::make_twins(model);
  const Tensor pixels = random_tensor({3, 2, 4, 4}, 2, DType::f32);
  const auto run = [&](std::optional<DType> type) {
    Gradients gradients;
    const Tensor scores =
        model.forward(pixels, Pass({.gradients = &gradients, .compute_type = type}));
    EXPECT_EQ(scores.dtype(), type.value_or(DType::f32));
    backward(scores, random_tensor({3, 3}, 5).to(scores.dtype()));
    std::vector<Tensor> all = {scores.detach()};
    for (const NamedParameter& p : nn::parameters(model)) all.push_back(gradients.of(p.parameter));
    return all;
  };
  const std::vector<Tensor> got = run(DType::bf16), want = run({});
  for (size_t i = 0; i < want.size(); ++i) EXPECT_LE(difference(got[i], want[i]), 0.05) << i;
}

TEST(VisionTransformer, PatchesAreInTheOrderOfAConvolution) {
  std::vector<double> pixels(16);
  for (size_t i = 0; i < 16; ++i) pixels[i] = static_cast<double>(i);
  // Two channels of 2 x 4: two patches.
  EXPECT_EQ(values_of(patches_of(Tensor::from(pixels, {1, 2, 2, 4}), 2)),
            (std::vector<double>{0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15}));
}

TEST(VisionTransformer, SaysWhatCannotBe) {
  VisionTransformerConfig config = tiny_image();
  config.patch_size = 3;
  EXPECT_EQ(error_of([&] { config.check(); }), "patch_size 3 does not divide image_size 4");
  Rng rng(1);
  const VisionTransformer model(tiny_image(), {.rng = &rng});
  EXPECT_EQ(error_of([&] {
              model.forward(Tensor::zeros({1, 2, 4, 5}, DType::f32), Pass());
            }),
            "VisionTransformer: expected pixels (B, 2, 4, 4), got (1, 2, 4, 5)");
}

}  // namespace
}  // namespace rapt::models
