// The six official modules: shapes, names, first weights, one meaning in every mode.
#include <cmath>
#include <set>

#include "rapt/nn/torch/multihead_attention.h"
#include "rapt/nn/torch/transformer.h"
#include "rapt/ops/arrange.h"
#include "rapt/ops/elementwise.h"
#include "tests/testing/modules.h"
#include "tests/testing/tensors.h"

namespace rapt::nn::torch {
namespace {

using testing::bools;
using testing::check_first_weights;
using testing::difference;
using testing::equal_within;
using testing::error_of;
using testing::random_tensor;
using testing::same_bits;
using testing::values_of;

Init in_f64(Rng& rng) { return {.rng = &rng, .dtype = DType::f64}; }

TransformerLayerOptions small_layer(bool batch_first = false) {
  return {.d_model = 6, .nhead = 3, .dim_feedforward = 5, .batch_first = batch_first};
}

std::vector<std::string> names_of(const Module& module) {
  std::vector<std::string> names;
  for (const NamedParameter& p : parameters(module)) names.push_back(p.name);
  return names;
}

// Sentence b of (T, N, C).
Tensor sentence(const Tensor& x, int64_t b) {
  return swap_axes(x).rows(b, 1).reshape({x.dim(0), x.dim(2)});
}

TEST(TorchModules, ParametersHaveTheOfficialNames) {
  Rng rng(1);
  const std::vector<std::string> attention = {"in_proj_weight", "in_proj_bias", "out_proj.weight",
                                              "out_proj.bias"};
  EXPECT_EQ(names_of(MultiheadAttention({.embed_dim = 6, .num_heads = 2}, in_f64(rng))), attention);
  EXPECT_EQ(
      names_of(MultiheadAttention({.embed_dim = 6, .num_heads = 2, .add_bias_kv = true, .kdim = 3},
                                  in_f64(rng))),
      (std::vector<std::string>{"q_proj_weight", "k_proj_weight", "v_proj_weight", "in_proj_bias",
                                "out_proj.weight", "out_proj.bias", "bias_k", "bias_v"}));
  EXPECT_EQ(names_of(TransformerEncoder({small_layer(), 1, true}, in_f64(rng))),
            (std::vector<std::string>{
                "layers.0.self_attn.in_proj_weight", "layers.0.self_attn.in_proj_bias",
                "layers.0.self_attn.out_proj.weight", "layers.0.self_attn.out_proj.bias",
                "layers.0.norm1.weight", "layers.0.norm1.bias", "layers.0.linear1.weight",
                "layers.0.linear1.bias", "layers.0.linear2.weight", "layers.0.linear2.bias",
                "layers.0.norm2.weight", "layers.0.norm2.bias", "norm.weight", "norm.bias"}));
  const std::vector<std::string> decoder =
      names_of(TransformerDecoderLayer(small_layer(), in_f64(rng)));
  const std::set<std::string> set(decoder.begin(), decoder.end());
  EXPECT_EQ(set.size(), 18u);
  for (const char* name :
       {"self_attn.in_proj_weight", "multihead_attn.in_proj_weight", "multihead_attn.out_proj.bias",
        "norm1.weight", "norm2.weight", "norm3.bias", "linear2.bias"})
    EXPECT_TRUE(set.contains(name)) << name;
  const std::vector<std::string> all = names_of(Transformer(
      {.d_model = 6, .nhead = 2, .num_encoder_layers = 1, .num_decoder_layers = 1}, in_f64(rng)));
  EXPECT_EQ(all.front(), "encoder.layers.0.self_attn.in_proj_weight");
  EXPECT_EQ(all.back(), "decoder.norm.bias");
}

TEST(TorchModules, WithoutBiasNoParameterIsOne) {
  Rng rng(1);
  TransformerLayerOptions options = small_layer();
  options.bias = false;
  for (const std::string& name : names_of(TransformerDecoderLayer(options, in_f64(rng))))
    EXPECT_EQ(name.find("bias"), std::string::npos) << name;
}

double largest(const Tensor& x) {
  double most = 0;
  for (const double value : values_of(x)) most = std::max(most, std::abs(value));
  return most;
}

Tensor value_of(const Module& module, const std::string& name) {
  for (const NamedParameter& p : parameters(module)) {
    if (p.name == name) return p.value();
  }
  ADD_FAILURE() << "no parameter " << name;
  return Tensor::zeros({0}, DType::f64);
}

// The bound of a uniform draw: many elements come close to it, none beyond.
void expect_bound(const Tensor& x, double bound) {
  EXPECT_LE(largest(x), bound);
  EXPECT_GE(largest(x), 0.95 * bound);
}

TEST(TorchModules, FirstWeightsAreThoseOfTheOfficialModules) {
  Rng rng(1);
  const int64_t E = 16;
  const MultiheadAttention attention({.embed_dim = E, .num_heads = 2, .add_bias_kv = true},
                                     in_f64(rng));
  expect_bound(value_of(attention, "in_proj_weight"), std::sqrt(6.0 / (4 * E)));
  expect_bound(value_of(attention, "out_proj.weight"), 1 / std::sqrt(double{E}));
  EXPECT_EQ(largest(value_of(attention, "in_proj_bias")), 0);
  EXPECT_EQ(largest(value_of(attention, "out_proj.bias")), 0);
  EXPECT_GT(largest(value_of(attention, "bias_k")), 0);
  const MultiheadAttention other({.embed_dim = E, .num_heads = 2, .kdim = 32}, in_f64(rng));
  expect_bound(value_of(other, "k_proj_weight"), std::sqrt(6.0 / (E + 32)));

  const TransformerLayerOptions options{.d_model = E, .nhead = 2, .dim_feedforward = 48};
  const TransformerEncoderLayer layer(options, in_f64(rng));
  expect_bound(value_of(layer, "linear1.weight"), 1 / std::sqrt(double{E}));
  expect_bound(value_of(layer, "linear2.weight"), 1 / std::sqrt(48.0));
  const Transformer transformer({.d_model = E,
                                 .nhead = 2,
                                 .num_encoder_layers = 1,
                                 .num_decoder_layers = 1,
                                 .dim_feedforward = 48},
                                in_f64(rng));
  expect_bound(value_of(transformer, "encoder.layers.0.linear1.weight"), std::sqrt(6.0 / (E + 48)));
  expect_bound(value_of(transformer, "decoder.layers.0.multihead_attn.out_proj.weight"),
               std::sqrt(6.0 / (2 * E)));
}

// pytorch/pytorch#86274
TEST(TorchModules, R11_NoTwoLayersBeginWithTheSameWeights) {
  EXPECT_TRUE(check_first_weights([](Rng& rng) {
    return std::make_unique<TransformerEncoder>(TransformerEncoderOptions{small_layer(), 6, false},
                                                in_f64(rng));
  }));
  EXPECT_TRUE(check_first_weights([](Rng& rng) {
    return std::make_unique<TransformerDecoder>(TransformerDecoderOptions{small_layer(), 6, true},
                                                in_f64(rng));
  }));
  EXPECT_TRUE(check_first_weights([](Rng& rng) {
    return std::make_unique<Transformer>(
        TransformerOptions{.d_model = 6, .nhead = 3, .dim_feedforward = 5}, in_f64(rng));
  }));
}

TEST(TorchModules, BatchFirstSecondAndNoneAreTheSame) {
  for (const DType type : {DType::f32, DType::f64}) {
    const Tensor src = random_tensor({4, 3, 6}, 1, type), tgt = random_tensor({2, 3, 6}, 2, type);
    const auto made = [&](bool batch_first) {
      Rng rng(3);
      return Transformer({.d_model = 6,
                          .nhead = 2,
                          .num_encoder_layers = 1,
                          .num_decoder_layers = 1,
                          .dim_feedforward = 5,
                          .batch_first = batch_first},
                         {.rng = &rng, .dtype = type});
    };
    const Transformer second = made(false), first = made(true);
    const Tensor y = second.forward(src, tgt, {}, Pass());
    EXPECT_EQ(y.shape(), tgt.shape());
    EXPECT_TRUE(same_bits(swap_axes(first.forward(swap_axes(src), swap_axes(tgt), {}, Pass())), y));
    for (int64_t b = 0; b < 3; ++b) {
      const Tensor alone = second.forward(sentence(src, b), sentence(tgt, b), {}, Pass());
      EXPECT_EQ(alone.shape(), (Shape{2, 6}));
      EXPECT_LE(difference(alone, sentence(y, b)), equal_within(type));
    }
  }
}

// Every way to say the same: with gradients or not, weights or not, in training without dropout.
TEST(TorchModules, R07_EveryModeGivesTheSameOutput) {
  for (const DType type : {DType::f32, DType::f64}) {
    Rng rng(3);
    const MultiheadAttention attention({.embed_dim = 6, .num_heads = 3},
                                       {.rng = &rng, .dtype = type});
    const Tensor x = random_tensor({5, 4, 6}, 1, type);
    const Tensor padding =
        bools({0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 1, 1, 1, 1, 0, 0, 0, 0, 1}, {4, 5});
    const auto run = [&](const Tensor& in, const Tensor& mask, bool weights, bool average,
                         bool training, Gradients* gradients) {
      return attention
          .forward(
              in, in, in,
              {.key_padding_mask = mask, .need_weights = weights, .average_attn_weights = average},
              Pass({.training = training, .gradients = gradients}))
          .output;
    };
    const Tensor plain = run(x, padding, false, true, false, nullptr);
    for (const bool weights : {false, true}) {
      for (const bool average : {false, true}) {
        for (const bool training : {false, true}) {
          Gradients gradients;
          EXPECT_LE(difference(run(x, padding, weights, average, training, &gradients), plain),
                    equal_within(type));
          EXPECT_LE(difference(run(x, padding, weights, average, training, nullptr), plain),
                    equal_within(type));
        }
      }
    }
    for (int64_t b = 0; b < 4; ++b) {  // alone, and cut to its true length
      const Tensor alone = sentence(x, b);
      const Tensor mask = padding.rows(b, 1).reshape({5});
      EXPECT_LE(difference(run(alone, mask, false, true, false, nullptr), sentence(plain, b)),
                equal_within(type));
      int64_t length = 0;
      for (const double hidden : values_of(mask)) length += hidden == 0;
      EXPECT_LE(difference(run(alone.rows(0, length), {}, false, true, false, nullptr),
                           sentence(plain, b).rows(0, length)),
                equal_within(type));
    }
  }
}

TEST(TorchModules, AttentionsOfAllThreeKindsInOneCall) {
  Rng rng(3);
  const Transformer transformer({.d_model = 6,
                                 .nhead = 2,
                                 .num_encoder_layers = 2,
                                 .num_decoder_layers = 3,
                                 .dim_feedforward = 5},
                                in_f64(rng));
  const Tensor src = random_tensor({4, 2, 6}, 1), tgt = random_tensor({3, 2, 6}, 2);
  for (const bool average : {false, true}) {
    Attentions attentions;
    const Tensor y = transformer.forward(
        src, tgt, {.tgt_is_causal = true, .attentions = {&attentions, average}}, Pass());
    EXPECT_TRUE(same_bits(y, transformer.forward(src, tgt, {.tgt_is_causal = true}, Pass())));
    ASSERT_EQ(attentions.encoder.size(), 2u);
    ASSERT_EQ(attentions.decoder.size(), 3u);
    ASSERT_EQ(attentions.cross.size(), 3u);
    EXPECT_EQ(attentions.encoder[1].shape(), average ? (Shape{2, 4, 4}) : (Shape{2, 2, 4, 4}));
    EXPECT_EQ(attentions.decoder[2].shape(), average ? (Shape{2, 3, 3}) : (Shape{2, 2, 3, 3}));
    EXPECT_EQ(attentions.cross[0].shape(), average ? (Shape{2, 3, 4}) : (Shape{2, 2, 3, 4}));
    const std::vector<double> w = values_of(attentions.decoder[0]);
    for (size_t row = 0; row < w.size() / 3; ++row) {
      EXPECT_NEAR(w[3 * row] + w[3 * row + 1] + w[3 * row + 2], 1, 1e-12);
      for (size_t j = row % 3 + 1; j < 3; ++j) EXPECT_EQ(w[3 * row + j], 0);
    }
    Attentions alone;
    transformer.forward(sentence(src, 1), sentence(tgt, 1), {.attentions = {&alone, average}},
                        Pass());
    EXPECT_EQ(alone.cross[0].shape(), average ? (Shape{3, 4}) : (Shape{2, 3, 4}));
  }
}

class Doubled : public TransformerEncoderInterface {
 public:
  Tensor forward(const Tensor& src, const TransformerEncoderArguments&,
                 const Pass&) const override {
    return scale(src, 2);
  }
  void visit(const Visitor&, const std::string&) const override {}
};

class SumOfBoth : public TransformerDecoderInterface {
 public:
  Tensor forward(const Tensor& tgt, const Tensor& memory, const TransformerDecoderArguments&,
                 const Pass&) const override {
    return add(tgt, memory);
  }
  void visit(const Visitor&, const std::string&) const override {}
};

TEST(TorchModules, CustomStacksTakeTheirPlaces) {
  Rng rng(3);
  const Transformer transformer({.d_model = 6,
                                 .nhead = 2,
                                 .custom_encoder = std::make_shared<Doubled>(),
                                 .custom_decoder = std::make_shared<SumOfBoth>()},
                                in_f64(rng));
  const Tensor src = random_tensor({4, 2, 6}, 1), tgt = random_tensor({4, 2, 6}, 2);
  EXPECT_TRUE(same_bits(transformer.forward(src, tgt, {}, Pass()), add(tgt, scale(src, 2))));
  EXPECT_EQ(count_parameters(transformer), 0);
}

TEST(TorchModules, AnActivationMayBeAFunction) {
  const auto made = [](const Activation& activation) {
    Rng rng(3);
    TransformerLayerOptions options = small_layer();
    options.activation = activation;
    return TransformerEncoderLayer(options, in_f64(rng));
  };
  const Tensor x = random_tensor({4, 2, 6}, 1);
  const auto run = [&](const Activation& activation) {
    return made(activation).forward(x, {}, Pass());
  };
  EXPECT_TRUE(same_bits(run("gelu"), run(Activation([](Tensor h) { return gelu(h); }))));
  EXPECT_FALSE(same_bits(run("gelu"), run(Activation([](Tensor h) { return scale(h, 2); }))));
}

TEST(TorchModules, SquareSubsequentMaskHidesWhatIsLater) {
  const Tensor mask = Transformer::generate_square_subsequent_mask(3, DType::f64);
  constexpr double kHidden = -INFINITY;
  EXPECT_EQ(values_of(mask), (std::vector<double>{0, kHidden, kHidden, 0, 0, kHidden, 0, 0, 0}));
  EXPECT_EQ(Transformer::generate_square_subsequent_mask(0).shape(), (Shape{0, 0}));
  EXPECT_EQ(error_of([] { Transformer::generate_square_subsequent_mask(-1); }),
            "generate_square_subsequent_mask: expected a size of at least 0, got -1");
}

}  // namespace
}  // namespace rapt::nn::torch
