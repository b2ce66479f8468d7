#include "rapt/nn/attention.h"
#include "rapt/nn/decoder.h"
#include "rapt/nn/embedding.h"
#include "rapt/nn/encoder.h"
#include "rapt/nn/positions.h"
#include "tests/testing/modules.h"
#include "tests/testing/tensors.h"

namespace rapt::nn {
namespace {

using testing::check_module;
using testing::difference;
using testing::error_of;
using testing::random_tensor;
using testing::same_bits;

Init in_f64(Rng& rng) { return {.rng = &rng, .dtype = DType::f64}; }

// A decoder layer's options at an awkward size.
LayerOptions small_layer(bool norm_first, const std::string& activation = "gelu") {
  return {.d_model = 6,
          .nhead = 3,
          .d_qk = 5,
          .d_v = 1,
          .dim_feedforward = 7,
          .dropout = 0.2,
          .activation = activation,
          .norm_first = norm_first};
}

const Rows kQueries = Rows::packed({3, 0, 2});
const Rows kKeys = Rows::packed({2, 1, 4});

TEST(Linear, EveryParameterHasItsGradient) {
  Rng rng(1);
  const Linear linear(5, 3, true, in_f64(rng));
  const Tensor x = random_tensor({4, 5}, 2);
  EXPECT_TRUE(check_module(linear, [&](const Pass& pass) { return linear.forward(x, pass); }));
  EXPECT_EQ(count_parameters(linear), 18);
}

TEST(Linear, ARangeOfOutputsIsThatPartOfTheWhole) {
  Rng rng(1);
  const Linear linear(5, 6, true, in_f64(rng));
  const Tensor x = random_tensor({4, 5}, 2);
  EXPECT_LE(difference(linear.forward(x, 2, 3, Pass()),
                       linear.forward(x, Pass()).columns(2, 3).contiguous_copy()),
            1e-15);
}

TEST(Embedding, TheTableHasItsGradientScaledAndDropped) {
  Rng rng(1);
  const Embedding embedding(5, 4, in_f64(rng));
  const Tensor positions = sinusoidal_positions(3, 4, DType::f64),
               ids = testing::ids({4, 1, 1, 0, 4});
  EXPECT_TRUE(check_module(
      embedding,
      [&](const Pass& pass) { return embedding.forward(ids, kQueries, positions, 1.5, 0.3, pass); },
      {.pass = {.training = true, .seed = 3}}));
}

TEST(LayerNorm, GainAndShiftHaveTheirGradients) {
  Rng rng(1);
  const LayerNorm norm(6, 1e-5, true, in_f64(rng));
  const Tensor x = random_tensor({5, 6}, 2), residual = random_tensor({5, 6}, 3);
  EXPECT_TRUE(check_module(norm, [&](const Pass& pass) { return norm.forward(x, pass); }));
  EXPECT_TRUE(check_module(
      norm,
      [&](const Pass& pass) { return norm.forward_residual(x, residual, kQueries, 0.4, pass); },
      {.pass = {.training = true, .seed = 3}}));
}

TEST(Attention, EveryParameterHasItsGradientWithFreeWidths) {
  Rng rng(1);
  const Attention attention({.d_model = 6, .nhead = 3, .d_qk = 5, .d_v = 2, .dropout = 0.3},
                            in_f64(rng));
  const Tensor x = random_tensor({5, 6}, 2), memory = random_tensor({7, 6}, 3);
  const PassOptions training{.training = true, .seed = 4};
  EXPECT_TRUE(check_module(attention,
                           [&](const Pass& pass) {
                             return attention.forward(x, kQueries, x, kQueries, Mask::causal(),
                                                      pass);
                           },
                           {.pass = training}));
  EXPECT_TRUE(check_module(
      attention,
      [&](const Pass& pass) { return attention.forward(x, kQueries, memory, kKeys, {}, pass); },
      {.pass = training}));
}

TEST(Attention, SelfAttentionInOneProductIsThatInTwo) {
  Rng rng(1);
  const Attention attention({.d_model = 6, .nhead = 2}, in_f64(rng));
  const Tensor x = random_tensor({5, 6}, 2);
  EXPECT_LE(difference(attention.forward(x, kQueries, x, kQueries, {}, Pass()),
                       attention.forward(x, kQueries, x.contiguous_copy(), kQueries, {}, Pass())),
            1e-14);
}

TEST(Attention, AQueryThatSeesNothingYieldsTheOutputBias) {
  Rng rng(1);
  const Attention attention({.d_model = 6, .nhead = 2}, in_f64(rng));
  const Tensor x = random_tensor({4, 6}, 2);
  const Rows rows = Rows::packed({4});
  const Tensor y =
      attention.forward(x, rows, x, rows, Mask::keep(testing::bools({0, 0, 0, 0}, {4})), Pass());
  Tensor bias;
  attention.visit(
      [&](const NamedParameter& p) {
        if (p.name == "output.bias") bias = p.value();
      },
      "");
  for (int64_t i = 0; i < 4; ++i) EXPECT_LE(difference(y.rows(i, 1).reshape({6}), bias), 0);
}

TEST(Attention, R09_HeadsThatDoNotFitAreRefused) {
  Rng rng(1);
  const auto make = [&](AttentionOptions options) {
    return error_of([&] { Attention(options, in_f64(rng)); });
  };
  EXPECT_NE(make({.d_model = 6, .nhead = 0}).find("nhead of at least 1, got 0"), std::string::npos);
  EXPECT_NE(make({.d_model = 6, .nhead = 4}).find("nhead 4 does not divide d_model 6"),
            std::string::npos);
  EXPECT_NE(make({.d_model = 6, .nhead = 8}).find("does not divide"), std::string::npos);
  EXPECT_NE(make({.d_model = 0, .nhead = 1}).find("d_model of at least 1"), std::string::npos);
  EXPECT_NE(make({.d_model = 6, .nhead = 2, .d_qk = -1}).find("d_qk"), std::string::npos);
  EXPECT_NE(make({.d_model = 6, .nhead = 2, .dropout = 1}).find("[0, 1)"), std::string::npos);
}

TEST(Attention, WeightsAreGivenToThePassThatWantsThem) {
  Rng rng(1);
  const Attention attention({.d_model = 6, .nhead = 3}, in_f64(rng));
  const Tensor x = random_tensor({5, 6}, 2), memory = random_tensor({7, 6}, 3);
  AttentionCapture capture;
  const Tensor with =
      attention.forward(x, kQueries, memory, kKeys, {}, Pass({.capture = &capture}).scope("here"));
  EXPECT_TRUE(same_bits(with, attention.forward(x, kQueries, memory, kKeys, {}, Pass())));
  ASSERT_EQ(capture.entries.size(), 1u);
  EXPECT_EQ(capture.entries[0].path, "here");
  EXPECT_EQ(capture.entries[0].weights.shape(), (Shape{3, 3, 3, 4}));
  capture.wants = [](std::string_view path) { return path == "there"; };
  attention.forward(x, kQueries, memory, kKeys, {}, Pass({.capture = &capture}).scope("here"));
  EXPECT_EQ(capture.entries.size(), 1u);
}

class Layers : public ::testing::TestWithParam<bool> {};

TEST_P(Layers, EveryParameterOfAnEncoderLayerHasItsGradient) {
  Rng rng(1);
  const EncoderLayer layer(small_layer(GetParam()), in_f64(rng));
  const Tensor x = random_tensor({5, 6}, 2);
  EXPECT_TRUE(check_module(layer,
                           [&](const Pass& pass) { return layer.forward(x, kQueries, {}, pass); },
                           {.pass = {.training = true, .seed = 9}}));
}

TEST_P(Layers, EveryParameterOfADecoderLayerHasItsGradient) {
  Rng rng(1);
  const DecoderLayer layer(small_layer(GetParam(), "gelu_tanh"), in_f64(rng));
  const Tensor x = random_tensor({5, 6}, 2);
  const Memory memory{random_tensor({7, 6}, 3), kKeys, {}};
  EXPECT_TRUE(check_module(
      layer,
      [&](const Pass& pass) { return layer.forward(x, kQueries, Mask::causal(), memory, pass); },
      {.pass = {.training = true, .seed = 9}}));
}

INSTANTIATE_TEST_SUITE_P(NormAfterAndBefore, Layers, ::testing::Bool());

// pytorch/pytorch#86274
TEST(Stacks, R11_LayersStartWithWeightsOfTheirOwn) {
  const LayerOptions options{.d_model = 8, .nhead = 2, .dim_feedforward = 8};
  EXPECT_TRUE(testing::check_first_weights(
      [&](Rng& rng) { return std::make_unique<Encoder>(options, 6, true, in_f64(rng)); }));
  EXPECT_TRUE(testing::check_first_weights(
      [&](Rng& rng) { return std::make_unique<Decoder>(options, 6, true, in_f64(rng)); }));
}

TEST(Encoder, R07_EveryPathGivesTheSameOutput) {
  Rng rng(1);
  LayerOptions options{.d_model = 12, .nhead = 3, .dim_feedforward = 20, .dropout = 0};
  const Encoder encoder(options, 2, true, Init{.rng = &rng});
  const Tensor x = random_tensor({9, 12}, 2, DType::f32);
  const Rows rows = Rows::packed({5, 4});
  const Tensor expected = encoder.forward(x, rows, {}, Pass());
  Gradients gradients;
  AttentionCapture capture;
  for (const bool training : {false, true}) {
    for (Gradients* g : {static_cast<Gradients*>(nullptr), &gradients}) {
      for (AttentionCapture* c : {static_cast<AttentionCapture*>(nullptr), &capture}) {
        const Pass pass({.training = training, .gradients = g, .capture = c});
        EXPECT_LE(difference(encoder.forward(x, rows, {}, pass).detach(), expected), 1e-6)
            << training << (g != nullptr) << (c != nullptr);
      }
    }
  }
  EXPECT_LE(
      difference(encoder.forward(x.rows(0, 5), Rows::packed({5}), {}, Pass()), expected.rows(0, 5)),
      0);
}

TEST(Encoder, R03_EmptySentencesAndBatchesChangeNobody) {
  Rng rng(1);
  const Encoder encoder({.d_model = 12, .nhead = 3, .dim_feedforward = 20, .dropout = 0}, 2, true,
                        in_f64(rng));
  const Tensor x = random_tensor({9, 12}, 2);
  const Tensor y = encoder.forward(x, Rows::packed({5, 3, 1, 0}), {}, Pass());
  EXPECT_TRUE(
      same_bits(y.rows(5, 3), encoder.forward(x.rows(5, 3), Rows::packed({3}), {}, Pass())));
  EXPECT_EQ(encoder.forward(x.rows(0, 0), Rows::packed({0, 0}), {}, Pass()).shape(),
            (Shape{0, 12}));
  EXPECT_EQ(encoder.forward(x.rows(0, 0), Rows(), {}, Pass()).shape(), (Shape{0, 12}));
}

TEST(SinusoidalPositions, R23_AnyWidthAndLength) {
  for (const int64_t C : {1, 5, 29, 127, 128}) {
    const Tensor table = sinusoidal_positions(3, C, DType::f64);
    for (int64_t p = 0; p < 3; ++p) {
      for (int64_t i = 0; i < C; ++i) {
        const double angle =
            static_cast<double>(p) /
            std::pow(10000.0, static_cast<double>(i - i % 2) / static_cast<double>(C));
        EXPECT_NEAR(table.data<double>()[p * C + i], i % 2 == 0 ? std::sin(angle) : std::cos(angle),
                    1e-14);
      }
    }
  }
  EXPECT_EQ(sinusoidal_positions(1, 4, DType::f32).numel(), 4);
  EXPECT_EQ(sinusoidal_positions(0, 4, DType::f32).numel(), 0);
}

}  // namespace
}  // namespace rapt::nn
