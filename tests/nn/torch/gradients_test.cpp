// Gradients of every parameter of the six official modules, by finite differences in f64: through
// added keys, float masks and every mask at once.
#include "tests/testing/gradients.h"
#include "rapt/nn/torch/multihead_attention.h"
#include "rapt/nn/torch/transformer.h"
#include "tests/testing/modules.h"
#include "tests/testing/tensors.h"

namespace rapt::nn::torch {
namespace {

using testing::bools;
using testing::check_gradients;
using testing::check_module;
using testing::random_tensor;
using Inputs = std::vector<Tensor>;

constexpr DType kType = DType::f64;

Init in_f64(Rng& rng) { return {.rng = &rng, .dtype = kType}; }

TransformerLayerOptions small_layer(bool norm_first, bool bias = true) {
  return {.d_model = 6,
          .nhead = 3,
          .dim_feedforward = 5,
          .dropout = 0.2,
          .activation = "gelu",
          .norm_first = norm_first,
          .bias = bias};
}

const Tensor kSource = random_tensor({4, 2, 6}, 11);  // (S, N, E)
const Tensor kTarget = random_tensor({3, 2, 6}, 12);
const Tensor kSourcePadding = bools({0, 0, 0, 1, 0, 0, 1, 1}, {2, 4});
const Tensor kTargetPadding = bools({0, 0, 0, 0, 0, 1}, {2, 3});

// Dropout by a seed: the same in every call.
const PassOptions kTraining{.training = true, .seed = 4};

MultiheadAttentionOptions attention_options(bool added, bool widths, bool bias) {
  MultiheadAttentionOptions options{.embed_dim = 6, .num_heads = 3, .dropout = 0.2, .bias = bias};
  options.add_bias_kv = options.add_zero_attn = added;
  if (widths) {
    options.kdim = 5;
    options.vdim = 4;
  }
  return options;
}

TEST(TorchGradients, MultiheadAttention) {
  for (const bool added : {false, true}) {
    for (const bool widths : {false, true}) {
      for (const bool bias : {false, true}) {
        Rng rng(1);
        const MultiheadAttention attention(attention_options(added, widths, bias), in_f64(rng));
        const Tensor key = random_tensor({4, 2, widths ? 5 : 6}, 3);
        const Tensor value = random_tensor({4, 2, widths ? 4 : 6}, 4);
        const MultiheadAttentionArguments arguments{
            .key_padding_mask = kSourcePadding,
            .attn_mask = random_tensor({6, 3, 4}, 5),
        };
        EXPECT_TRUE(
            check_module(attention,
                         [&](const Pass& pass) {
                           return attention.forward(kTarget, key, value, arguments, pass).output;
                         },
                         {.pass = kTraining}))
            << added << widths << bias;
      }
    }
  }
}

TEST(TorchGradients, InputsMasksAndWeightsOfMultiheadAttention) {
  for (const bool added : {false, true}) {
    for (const bool average : {false, true}) {
      Rng rng(1);
      const MultiheadAttention attention(attention_options(added, false, true), in_f64(rng));
      const auto run = [&](const Inputs& x) {
        return attention.forward(
            x[0], x[1], x[2],
            {.key_padding_mask = x[4], .attn_mask = x[3], .average_attn_weights = average}, Pass());
      };
      for (const Shape& mask : {Shape{3, 4}, Shape{6, 3, 4}}) {
        const Inputs inputs = {kTarget, kSource, random_tensor({4, 2, 6}, 4),
                               random_tensor(mask, 5), random_tensor({2, 4}, 6)};
        EXPECT_TRUE(
            check_gradients([&](const Inputs& x) { return run(x).output; }, inputs, {.most = 24}));
        // The values do not change the weights.
        const auto weights = [&](const Inputs& x) {
          return run({x[0], x[1], inputs[2], x[2], x[3]}).attn_weights;
        };
        EXPECT_TRUE(
            check_gradients(weights, {inputs[0], inputs[1], inputs[3], inputs[4]}, {.most = 24}));
      }
    }
  }
}

TEST(TorchGradients, EncoderLayerAndStack) {
  for (const bool norm_first : {false, true}) {
    Rng rng(2);
    const TransformerEncoderLayer layer(small_layer(norm_first), in_f64(rng));
    EXPECT_TRUE(check_module(layer,
                             [&](const Pass& pass) {
                               return layer.forward(kSource,
                                                    {.src_mask = random_tensor({4, 4}, 6),
                                                     .src_key_padding_mask = kSourcePadding},
                                                    pass);
                             },
                             {.pass = kTraining}));
    const TransformerEncoder stack({small_layer(norm_first, false), 2, true}, in_f64(rng));
    EXPECT_TRUE(check_module(
        stack, [&](const Pass& pass) { return stack.forward(kSource, {.is_causal = true}, pass); },
        {.pass = kTraining}));
  }
}

TEST(TorchGradients, DecoderLayerAndStack) {
  for (const bool norm_first : {false, true}) {
    Rng rng(3);
    const TransformerDecoderLayer layer(small_layer(norm_first), in_f64(rng));
    EXPECT_TRUE(check_module(layer,
                             [&](const Pass& pass) {
                               return layer.forward(kTarget, kSource,
                                                    {.memory_mask = random_tensor({3, 4}, 6),
                                                     .tgt_key_padding_mask = kTargetPadding,
                                                     .memory_key_padding_mask = kSourcePadding,
                                                     .tgt_is_causal = true},
                                                    pass);
                             },
                             {.pass = kTraining}));
    const TransformerDecoder stack({small_layer(norm_first, false), 2, true}, in_f64(rng));
    EXPECT_TRUE(check_module(stack,
                             [&](const Pass& pass) {
                               return stack.forward(kTarget, kSource, {.memory_is_causal = true},
                                                    pass);
                             },
                             {.pass = kTraining}));
  }
}

TEST(TorchGradients, Transformer) {
  Rng rng(4);
  const Transformer transformer({.d_model = 6,
                                 .nhead = 2,
                                 .num_encoder_layers = 1,
                                 .num_decoder_layers = 1,
                                 .dim_feedforward = 5},
                                in_f64(rng));
  EXPECT_TRUE(check_module(transformer,
                           [&](const Pass& pass) {
                             return transformer.forward(kSource, kTarget,
                                                        {.src_mask = random_tensor({4, 4}, 7),
                                                         .src_key_padding_mask = kSourcePadding,
                                                         .tgt_key_padding_mask = kTargetPadding,
                                                         .memory_key_padding_mask = kSourcePadding,
                                                         .tgt_is_causal = true},
                                                        pass);
                           },
                           {.pass = kTraining}));
}

}  // namespace
}  // namespace rapt::nn::torch
