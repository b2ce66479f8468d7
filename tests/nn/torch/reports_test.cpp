// Faults that others met, through the official six classes.
#include <cmath>
#include <limits>

#include "rapt/nn/torch/multihead_attention.h"
#include "rapt/nn/torch/transformer.h"
#include "rapt/ops/arrange.h"
#include "rapt/ops/attention.h"
#include "tests/testing/tensors.h"

namespace rapt::nn::torch {
namespace {

using testing::bools;
using testing::difference;
using testing::equal_within;
using testing::error_of;
using testing::random_tensor;
using testing::same_bits;
using testing::values_of;

constexpr DType kTypes[] = {DType::f32, DType::f64};
constexpr double kHidden = -std::numeric_limits<double>::infinity();

MultiheadAttention attention_of(MultiheadAttentionOptions options, DType type = DType::f64) {
  Rng rng(3);
  return MultiheadAttention(options, {.rng = &rng, .dtype = type});
}

bool all_finite(const Tensor& x) {
  for (const double value : values_of(x)) {
    if (!std::isfinite(value)) return false;
  }
  return true;
}

// The sum of all elements, sent back through `y`.
void send_back_ones(const Tensor& y) { backward(y, Tensor::full(y.shape(), y.dtype(), 1)); }

// pytorch/pytorch#41508
TEST(TorchReports, R01_ARowThatSeesNothingPoisonsNoGradient) {
  const MultiheadAttention attention = attention_of({.embed_dim = 1, .num_heads = 1});
  const Tensor x = random_tensor({4, 2, 1}, 1);
  Tensor band = Tensor::full({4, 4}, DType::f64, kHidden);
  for (int64_t i = 0; i < 4; ++i) {
    band.data<double>()[i * 4 + i] = 0;
    if (i > 0) band.data<double>()[i * 4 + i - 1] = 0;
  }
  const Tensor padding = bools({0, 0, 0, 0, 0, 0, 1, 1}, {2, 4});
  const auto gradients_of = [&](const Tensor& in, const Tensor& mask) {
    Gradients gradients;
    const Tensor y = attention
                         .forward(in, in, in, {.key_padding_mask = mask, .attn_mask = band},
                                  Pass({.gradients = &gradients}))
                         .output;
    Tensor dy = Tensor::zeros(y.shape(), DType::f64);
    for (int64_t i = 0; i < 4; ++i) dy.data<double>()[i * y.dim(1)] = 1;  // the first sample
    backward(y, dy);
    std::vector<Tensor> all;
    for (const NamedParameter& p : parameters(attention)) all.push_back(gradients.of(p.parameter));
    return all;
  };
  const auto both = gradients_of(x, padding);
  const auto first = gradients_of(swap_axes(swap_axes(x).rows(0, 1)), padding.rows(0, 1));
  ASSERT_EQ(both.size(), 4u);
  for (size_t i = 0; i < both.size(); ++i) {
    EXPECT_TRUE(all_finite(both[i]));
    EXPECT_LE(difference(both[i], first[i]), 1e-12);
  }
  const auto result =
      attention.forward(x, x, x, {.key_padding_mask = padding, .attn_mask = band}, Pass());
  EXPECT_EQ(values_of(result.attn_weights.rows(1, 1).reshape({4, 4}).rows(3, 1)),
            (std::vector<double>{0, 0, 0, 0}));
}

// pytorch/pytorch#103963
TEST(TorchReports, R02_BoolAndInfinityMasksAgreeBitForBit) {
  for (const DType type : kTypes) {
    const MultiheadAttention attention = attention_of({.embed_dim = 6, .num_heads = 2}, type);
    const Tensor x = random_tensor({8, 6}, 1, type);
    Tensor hide = Tensor::zeros({8, 8}, DType::boolean);
    Tensor infinite = Tensor::zeros({8, 8}, DType::f64), large = Tensor::zeros({8, 8}, DType::f64);
    for (int64_t i = 32; i < 64; ++i) {
      hide.data<uint8_t>()[i] = 1;
      infinite.data<double>()[i] = kHidden;
      large.data<double>()[i] = -1e9;
    }
    const auto run = [&](const Tensor& mask) {
      return attention.forward(x, x, x, {.attn_mask = mask}, Pass());
    };
    const auto by_bool = run(hide), by_float = run(infinite.to(type)),
               by_large = run(large.to(type));
    EXPECT_TRUE(same_bits(by_bool.output, by_float.output));
    EXPECT_TRUE(same_bits(by_bool.attn_weights, by_float.attn_weights));
    for (const double w : values_of(by_bool.attn_weights.rows(4, 4))) EXPECT_EQ(w, 0);
    // A large number hides nothing where it is everywhere: the row is what it is without it, up
    // to the digits that the sum loses.
    for (int64_t i = 4; i < 8; ++i) {
      double sum = 0;
      for (const double w : values_of(by_large.attn_weights.rows(i, 1))) sum += w;
      EXPECT_NEAR(sum, 1, 1e-6);
    }
  }
}

// pytorch/pytorch#27968
TEST(TorchReports, R03_EmptySentencesChangeNobody) {
  for (const DType type : kTypes) {
    Rng rng(3);
    const TransformerEncoder encoder(
        {{.d_model = 6, .nhead = 2, .dim_feedforward = 5, .batch_first = true}, 2, false},
        {.rng = &rng, .dtype = type});
    const int lengths[] = {5, 3, 1, 0};
    const Tensor x = random_tensor({4, 5, 6}, 1, type);
    Tensor padding = Tensor::zeros({4, 5}, DType::boolean);
    for (int64_t b = 0; b < 4; ++b) {
      for (int64_t t = lengths[b]; t < 5; ++t) padding.data<uint8_t>()[b * 5 + t] = 1;
    }
    const Tensor y = encoder.forward(x, {.src_key_padding_mask = padding}, Pass());
    EXPECT_TRUE(all_finite(y));
    for (int64_t b = 0; b < 3; ++b) {
      const Tensor alone =
          encoder.forward(x.rows(b, 1).reshape({5, 6}).rows(0, lengths[b]), {}, Pass());
      EXPECT_LE(difference(alone, y.rows(b, 1).reshape({5, 6}).rows(0, lengths[b])),
                equal_within(type));
    }
    for (const Shape& shape : {Shape{0, 5, 6}, Shape{4, 0, 6}, Shape{0, 0, 6}})
      EXPECT_EQ(encoder.forward(Tensor::zeros(shape, type), {}, Pass()).shape(), shape);
  }
}

TEST(TorchReports, R03_EmptyInputsGiveEmptyOutputs) {
  for (const bool added : {false, true}) {
    const MultiheadAttention attention = attention_of({.embed_dim = 6,
                                                       .num_heads = 2,
                                                       .add_bias_kv = added,
                                                       .add_zero_attn = added,
                                                       .batch_first = true});
    const int64_t more = added ? 2 : 0;
    for (const auto& [N, L, S] :
         {std::array<int64_t, 3>{0, 4, 3}, {2, 0, 3}, {2, 4, 0}, {0, 0, 0}}) {
      for (const bool average : {false, true}) {
        const Tensor memory = Tensor::full({N, S, 6}, DType::f64, 1);
        const auto result = attention.forward(Tensor::full({N, L, 6}, DType::f64, 1), memory,
                                              memory, {.average_attn_weights = average}, Pass());
        EXPECT_EQ(result.output.shape(), (Shape{N, L, 6}));
        EXPECT_EQ(result.attn_weights.shape(),
                  average ? (Shape{N, L, S + more}) : (Shape{N, 2, L, S + more}));
        EXPECT_TRUE(all_finite(result.output));
      }
    }
  }
}

// rasbt/LLMs-from-scratch#1061: here true hides; that no token sees the future is seen in the
// numbers.
TEST(TorchReports, R04_TheMaskHidesTheFuture) {
  Rng rng(3);
  const TransformerEncoder encoder({{.d_model = 6, .nhead = 2, .dim_feedforward = 5}, 2, true},
                                   {.rng = &rng, .dtype = DType::f64});
  const Tensor future = bools({0, 1, 1, 0, 0, 1, 0, 0, 0}, {3, 3});
  const Tensor x = random_tensor({3, 6}, 1);
  Tensor changed = x.contiguous_copy();
  for (int64_t c = 0; c < 6; ++c) changed.data<double>()[2 * 6 + c] += 1;
  const auto run = [&](const Tensor& in, const TransformerEncoderArguments& arguments) {
    return encoder.forward(in, arguments, Pass());
  };
  for (const TransformerEncoderArguments& arguments :
       {TransformerEncoderArguments{.mask = future},
        TransformerEncoderArguments{
            .mask = Transformer::generate_square_subsequent_mask(3, DType::f64)},
        TransformerEncoderArguments{.is_causal = true},
        TransformerEncoderArguments{.mask = future, .is_causal = true}}) {
    const Tensor a = run(x, arguments), b = run(changed, arguments);
    EXPECT_TRUE(same_bits(a.rows(0, 2), b.rows(0, 2)));
    EXPECT_FALSE(same_bits(a.rows(2, 1), b.rows(2, 1)));
    EXPECT_LE(difference(a, run(x, {.is_causal = true})), 1e-12);
  }
}

// pytorch/pytorch#99282
TEST(TorchReports, R05_AskingForWeightsKeepsTheMaskCausal) {
  const MultiheadAttention attention =
      attention_of({.embed_dim = 6, .num_heads = 2, .batch_first = true});
  const Tensor x = random_tensor({2, 4, 6}, 1);
  for (const Tensor& padding : {Tensor(), bools({0, 0, 0, 0, 0, 0, 0, 1}, {2, 4})}) {
    const auto run = [&](bool weights) {
      return attention.forward(
          x, x, x, {.key_padding_mask = padding, .need_weights = weights, .is_causal = true},
          Pass());
    };
    const auto with = run(true);
    EXPECT_LE(difference(with.output, run(false).output), 1e-12);
    EXPECT_FALSE(run(false).attn_weights.defined());
    const std::vector<double> w = values_of(with.attn_weights);
    for (size_t row = 0; row < 8; ++row) {
      for (size_t j = row % 4 + 1; j < 4; ++j) EXPECT_EQ(w[row * 4 + j], 0);
    }
  }
}

TEST(TorchReports, R05_AMaskThatContradictsCausalityIsAnError) {
  const MultiheadAttention attention = attention_of({.embed_dim = 6, .num_heads = 2});
  const Tensor x = random_tensor({3, 6}, 1);
  EXPECT_EQ(error_of([&] {
              attention.forward(
                  x, x, x, {.attn_mask = Tensor::zeros({3, 3}, DType::boolean), .is_causal = true},
                  Pass());
            }),
            "MultiheadAttention: is_causal is true, but attn_mask lets query 0 of 3 see key 1 of "
            "3; pass only one of them (causality is by position: key <= query + keys - queries)");
  const Tensor far = bools({0, 1, 1, 1, 0, 1, 0, 0, 0}, {3, 3});
  EXPECT_EQ(
      error_of([&] { attention.forward(x, x, x, {.attn_mask = far, .is_causal = true}, Pass()); }),
      "MultiheadAttention: is_causal is true, but attn_mask lets query 1 of 3 not plainly "
      "see key 0 of 3; pass only one of them (causality is by position: key <= query + keys "
      "- queries)");
}

// pytorch/pytorch#108108
TEST(TorchReports, R06_CausalityIsByPosition) {
  for (const DType type : kTypes) {
    const MultiheadAttention attention = attention_of({.embed_dim = 6, .num_heads = 2}, type);
    const Tensor x = random_tensor({8, 6}, 1, type);
    const Tensor whole = attention.forward(x, x, x, {.is_causal = true}, Pass()).output;
    for (const int64_t L : {1, 3}) {
      const Tensor last = x.rows(8 - L, L);
      EXPECT_LE(difference(attention.forward(last, x, x, {.is_causal = true}, Pass()).output,
                           whole.rows(8 - L, L)),
                equal_within(type));
    }
    const Tensor keys = x.rows(0, 2);
    const auto result = attention.forward(x.rows(0, 5), keys, keys, {.is_causal = true}, Pass());
    const std::vector<double> weights = values_of(result.attn_weights);
    EXPECT_EQ(std::vector<double>(weights.begin(), weights.begin() + 6), std::vector<double>(6, 0));
    EXPECT_NEAR(weights[6], 1, 1e-6);
    EXPECT_EQ(weights[7], 0);
    EXPECT_NEAR(weights[8] + weights[9], 1, 1e-6);
  }
}

TEST(TorchReports, R06_AMemoryIsCausalByPositionToo) {
  Rng rng(3);
  const TransformerDecoder decoder({{.d_model = 6, .nhead = 2, .dim_feedforward = 5}, 2, true},
                                   {.rng = &rng, .dtype = DType::f64});
  const Tensor tgt = random_tensor({3, 6}, 1), memory = random_tensor({5, 6}, 2);
  Tensor changed = memory.contiguous_copy();
  changed.data<double>()[4 * 6] += 1;  // which the last target alone may see
  const TransformerDecoderArguments causal{.tgt_is_causal = true, .memory_is_causal = true};
  const Tensor a = decoder.forward(tgt, memory, causal, Pass()),
               b = decoder.forward(tgt, changed, causal, Pass());
  EXPECT_TRUE(same_bits(a.rows(0, 2), b.rows(0, 2)));
  EXPECT_FALSE(same_bits(a.rows(2, 1), b.rows(2, 1)));
}

// pytorch/pytorch#27623
TEST(TorchReports, R08_KeysAndValuesOfOtherWidths) {
  for (const int64_t heads : {1, 3}) {
    for (const int64_t kdim : {24, 10}) {
      const MultiheadAttention attention =
          attention_of({.embed_dim = 24, .num_heads = heads, .kdim = kdim, .vdim = 12});
      const auto result =
          attention.forward(random_tensor({10, 5, 24}, 1), random_tensor({7, 5, kdim}, 2),
                            random_tensor({7, 5, 12}, 3), {}, Pass());
      EXPECT_EQ(result.output.shape(), (Shape{10, 5, 24}));
      EXPECT_TRUE(all_finite(result.output));
    }
  }
  EXPECT_EQ(error_of([] { attention_of({.embed_dim = 24, .num_heads = 3, .vdim = 0}); }),
            "MultiheadAttention: expected vdim of at least 1, got 0");
}

// pytorch/pytorch#106700
TEST(TorchReports, R09_HeadsThatCannotBeAreAnErrorBeforeAnyArithmetic) {
  EXPECT_EQ(error_of([] { attention_of({.embed_dim = 6, .num_heads = 0}); }),
            "MultiheadAttention: expected num_heads of at least 1, got 0");
  EXPECT_EQ(error_of([] { attention_of({.embed_dim = 0, .num_heads = 1}); }),
            "MultiheadAttention: expected embed_dim of at least 1, got 0");
  EXPECT_EQ(error_of([] { attention_of({.embed_dim = 6, .num_heads = 12}); }),
            "MultiheadAttention: expected num_heads that divide embed_dim 6, got 12");
  EXPECT_EQ(error_of([] { attention_of({.embed_dim = 6, .num_heads = 4}); }),
            "MultiheadAttention: expected num_heads that divide embed_dim 6, got 4");
  const auto layer = [](int64_t d_model, int64_t nhead) {
    return error_of([&] { TransformerDecoderLayer({.d_model = d_model, .nhead = nhead}, {}); });
  };
  EXPECT_EQ(layer(6, 0), "TransformerDecoderLayer: expected nhead of at least 1, got 0");
  EXPECT_EQ(layer(0, 1), "TransformerDecoderLayer: expected d_model of at least 1, got 0");
  EXPECT_EQ(layer(6, 4),
            "TransformerDecoderLayer: expected an nhead that divides d_model 6, got 4");
  EXPECT_EQ(error_of([] { Transformer({.d_model = 6, .nhead = -1}, {}); }),
            "Transformer: expected nhead of at least 1, got -1");
}

// facebookresearch/fairseq#3365
TEST(TorchReports, R10_WeightsOfEveryHeadOrTheirMean) {
  for (const bool batch_first : {false, true}) {
    const MultiheadAttention attention =
        attention_of({.embed_dim = 6, .num_heads = 2, .batch_first = batch_first});
    const Tensor batched = random_tensor({3, 3, 6}, 1);
    for (const Tensor& x : {batched, batched.rows(0, 1).reshape({3, 6})}) {
      const bool alone = x.rank() == 2;
      const auto run = [&](bool average) {
        return attention.forward(x, x, x, {.average_attn_weights = average}, Pass()).attn_weights;
      };
      const Tensor each = run(false), mean = run(true);
      EXPECT_EQ(each.shape(), alone ? (Shape{2, 3, 3}) : (Shape{3, 2, 3, 3}));
      EXPECT_EQ(mean.shape(), alone ? (Shape{3, 3}) : (Shape{3, 3, 3}));
      EXPECT_TRUE(same_bits(mean.reshape({alone ? 1 : 3, 3, 3}),
                            mean_heads(each.reshape({alone ? 1 : 3, 2, 3, 3}))));
    }
  }
}

// huggingface/transformers#17306: two masks of the lowest number, added, are minus infinity.
TEST(TorchReports, R12_LowestNumbersAsMasksStayFinite) {
  const MultiheadAttention attention = attention_of({.embed_dim = 6, .num_heads = 2}, DType::f32);
  const float lowest = std::numeric_limits<float>::lowest();
  const Tensor x = random_tensor({2, 1, 6}, 1, DType::f32, 20, 40);
  const Tensor causal = Tensor::from<float>({0, lowest, 0, 0}, {2, 2});
  const Tensor padding = Tensor::from<float>({lowest, 0}, {1, 2});  // the first is padding
  Gradients gradients;
  const auto result = attention.forward(x, x, x, {.key_padding_mask = padding, .attn_mask = causal},
                                        Pass({.gradients = &gradients}));
  EXPECT_TRUE(all_finite(result.output));
  EXPECT_TRUE(all_finite(result.attn_weights));
  send_back_ones(result.output);
  for (const NamedParameter& p : parameters(attention))
    EXPECT_TRUE(all_finite(gradients.of(p.parameter))) << p.name;
}

}  // namespace
}  // namespace rapt::nn::torch
