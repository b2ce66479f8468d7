// Every argument of the official modules' forward with each thing that cannot be: one error that
// says argument, expected and got; a failed call changes nothing.
#include <functional>

#include "rapt/nn/torch/multihead_attention.h"
#include "rapt/nn/torch/transformer.h"
#include "tests/nn/torch/refused.h"

namespace rapt::nn::torch {
namespace {

constexpr int64_t N = 3, H = 2, S = 4, T = 5, E = 6;

Tensor floats(const Shape& shape, DType dtype = DType::f32) {
  return Tensor::full(shape, dtype, 0.5);
}

// Hides nothing.
Tensor mask(const Shape& shape) { return Tensor::zeros(shape, DType::boolean); }

// What an activation may not be where (T, N, width) is expected.
std::vector<Tensor> bad_activations(int64_t length, int64_t width) {
  return {Tensor(),
          floats({width}),
          floats({1, length, N, width}),
          floats({length, N, width + 1}),
          floats({length, N, 0}),
          floats({length, N, width}, DType::f64),
          Tensor::zeros({length, N, width}, DType::i64),
          mask({length, N, width})};
}

std::vector<Tensor> bad_attention_masks(int64_t L, int64_t K) {
  std::vector<Tensor> all;
  for (const Shape& shape :
       {Shape{L + 1, K}, Shape{L, K + 1}, Shape{K}, Shape{1, L, K}, Shape{N, L, K},
        Shape{N * H + 1, L, K}, Shape{N * H, L + 1, K}, Shape{N, H, L, K}, Shape{L, 0}}) {
    all.push_back(mask(shape));
    all.push_back(floats(shape));
  }
  all.push_back(floats({L, K}, DType::f64));
  all.push_back(Tensor::zeros({L, K}, DType::i32));
  return all;
}

std::vector<Tensor> bad_padding_masks(int64_t K) {
  std::vector<Tensor> all;
  for (const Shape& shape :
       {Shape{N + 1, K}, Shape{N, K + 1}, Shape{K}, Shape{N, 1, K}, Shape{K, N}, Shape{N, 0}}) {
    all.push_back(mask(shape));
    all.push_back(floats(shape));
  }
  all.push_back(floats({N, K}, DType::f64));
  all.push_back(Tensor::zeros({N, K}, DType::i64));
  return all;
}

const TransformerLayerOptions kLayer{.d_model = E, .nhead = H, .dim_feedforward = 5, .dropout = 0};

// A call's tensors; `place` is where a bad one goes, `name` how the module calls it.
template <class Tensors>
struct Argument {
  const char* name;
  Tensor Tensors::*place;
  std::vector<Tensor> bad;
};

template <class Tensors>
void expect_tensors_refused(const Tensors& good, const std::function<void(const Tensors&)>& call,
                            const std::vector<Argument<Tensors>>& table) {
  call(good);  // does not throw
  for (const Argument<Tensors>& argument : table) {
    for (const Tensor& bad : argument.bad) {
      Tensors given = good;
      given.*argument.place = bad;
      SCOPED_TRACE(bad.defined() ? bad.shape().text() : "none");
      expect_refused(argument.name, [&] { call(given); });
    }
  }
}

struct MultiheadTensors {
  Tensor query = floats({T, N, E}), key = floats({S, N, 7}), value = floats({S, N, 8});
  Tensor attn_mask = mask({T, S}), key_padding_mask = mask({N, S});
};

TEST(TorchBadInput, ForwardOfMultiheadAttention) {
  const MultiheadAttention module({.embed_dim = E, .num_heads = H, .kdim = 7, .vdim = 8}, {});
  std::vector<Tensor> keys = bad_activations(S, 7), values = bad_activations(S, 8);
  keys.push_back(floats({S, N + 1, 7}));
  keys.push_back(floats({S, 7}));  // the query has a batch
  values.push_back(floats({S, N + 1, 8}));
  values.push_back(floats({S + 1, N, 8}));
  expect_tensors_refused<MultiheadTensors>(
      {},
      [&](const MultiheadTensors& x) {
        module.forward(x.query, x.key, x.value,
                       {.key_padding_mask = x.key_padding_mask, .attn_mask = x.attn_mask},
                       Pass::inference());
      },
      {{"query", &MultiheadTensors::query, bad_activations(T, E)},
       {"key", &MultiheadTensors::key, keys},
       {"value", &MultiheadTensors::value, values},
       {"attn_mask", &MultiheadTensors::attn_mask, bad_attention_masks(T, S)},
       {"key_padding_mask", &MultiheadTensors::key_padding_mask, bad_padding_masks(S)}});
}

struct EncoderTensors {
  Tensor src = floats({S, N, E}), mask_ = mask({S, S}), src_key_padding_mask = mask({N, S});
};

std::vector<Argument<EncoderTensors>> encoder_table(const char* mask_name) {
  return {{"src", &EncoderTensors::src, bad_activations(S, E)},
          {mask_name, &EncoderTensors::mask_, bad_attention_masks(S, S)},
          {"src_key_padding_mask", &EncoderTensors::src_key_padding_mask, bad_padding_masks(S)}};
}

TEST(TorchBadInput, ForwardOfTheEncoder) {
  const TransformerEncoderLayer layer(kLayer, {});
  expect_tensors_refused<EncoderTensors>(
      {},
      [&](const EncoderTensors& x) {
        layer.forward(x.src, {x.mask_, x.src_key_padding_mask}, Pass::inference());
      },
      encoder_table("src_mask"));
  const TransformerEncoder stack({kLayer, 1}, {});
  expect_tensors_refused<EncoderTensors>(
      {},
      [&](const EncoderTensors& x) {
        stack.forward(x.src, {x.mask_, x.src_key_padding_mask}, Pass::inference());
      },
      encoder_table("mask"));
}

struct DecoderTensors {
  Tensor tgt = floats({T, N, E}), memory = floats({S, N, E});
  Tensor tgt_mask = mask({T, T}), memory_mask = mask({T, S});
  Tensor tgt_key_padding_mask = mask({N, T}), memory_key_padding_mask = mask({N, S});
};

TEST(TorchBadInput, ForwardOfTheDecoder) {
  using D = DecoderTensors;
  std::vector<Tensor> memories = bad_activations(S, E);
  memories.push_back(floats({S, N + 1, E}));
  memories.push_back(floats({S, E}));
  const std::vector<Argument<D>> table = {
      {"tgt", &D::tgt, bad_activations(T, E)},
      {"memory", &D::memory, memories},
      {"tgt_mask", &D::tgt_mask, bad_attention_masks(T, T)},
      {"memory_mask", &D::memory_mask, bad_attention_masks(T, S)},
      {"tgt_key_padding_mask", &D::tgt_key_padding_mask, bad_padding_masks(T)},
      {"memory_key_padding_mask", &D::memory_key_padding_mask, bad_padding_masks(S)}};
  const TransformerDecoderLayer layer(kLayer, {});
  const TransformerDecoder stack({kLayer, 1}, {});
  const auto masks = [](const D& x) {
    return TransformerDecoderLayerArguments{x.tgt_mask, x.memory_mask, x.tgt_key_padding_mask,
                                            x.memory_key_padding_mask};
  };
  expect_tensors_refused<D>(
      {}, [&](const D& x) { layer.forward(x.tgt, x.memory, masks(x), Pass::inference()); }, table);
  expect_tensors_refused<D>(
      {},
      [&](const D& x) {
        stack.forward(
            x.tgt, x.memory,
            {x.tgt_mask, x.memory_mask, x.tgt_key_padding_mask, x.memory_key_padding_mask},
            Pass::inference());
      },
      table);
}

struct TransformerTensors {
  Tensor src = floats({S, N, E}), tgt = floats({T, N, E});
  Tensor src_mask = mask({S, S}), tgt_mask = mask({T, T}), memory_mask = mask({T, S});
  Tensor src_key_padding_mask = mask({N, S}), tgt_key_padding_mask = mask({N, T}),
         memory_key_padding_mask = mask({N, S});
  TransformerArguments arguments() const {
    return {.src_mask = src_mask,
            .tgt_mask = tgt_mask,
            .memory_mask = memory_mask,
            .src_key_padding_mask = src_key_padding_mask,
            .tgt_key_padding_mask = tgt_key_padding_mask,
            .memory_key_padding_mask = memory_key_padding_mask};
  }
};

Transformer transformer() {
  return Transformer({.d_model = E,
                      .nhead = H,
                      .num_encoder_layers = 1,
                      .num_decoder_layers = 1,
                      .dim_feedforward = 5},
                     {});
}

TEST(TorchBadInput, ForwardOfTransformer) {
  using X = TransformerTensors;
  const Transformer module = transformer();
  std::vector<Tensor> targets = bad_activations(T, E);
  targets.push_back(floats({T, N + 1, E}));
  targets.push_back(floats({T, E}));
  expect_tensors_refused<X>(
      {}, [&](const X& x) { module.forward(x.src, x.tgt, x.arguments(), Pass::inference()); },
      {{"src", &X::src, bad_activations(S, E)},
       {"tgt", &X::tgt, targets},
       {"src_mask", &X::src_mask, bad_attention_masks(S, S)},
       {"tgt_mask", &X::tgt_mask, bad_attention_masks(T, T)},
       {"memory_mask", &X::memory_mask, bad_attention_masks(T, S)},
       {"src_key_padding_mask", &X::src_key_padding_mask, bad_padding_masks(S)},
       {"tgt_key_padding_mask", &X::tgt_key_padding_mask, bad_padding_masks(T)},
       {"memory_key_padding_mask", &X::memory_key_padding_mask, bad_padding_masks(S)}});
}

// ------------------------------------------------------------------- masks that contradict a hint

void expect_contradiction(const std::string& hint, const std::string& mask_name,
                          const std::function<void()>& call) {
  const std::string message = testing::error_of(call);
  EXPECT_NE(message.find(hint), std::string::npos) << message;
  EXPECT_NE(message.find(mask_name), std::string::npos) << message;
}

TEST(TorchBadInput, AMaskThatContradictsItsHint) {
  const Pass pass = Pass::inference();
  const MultiheadTensors m;
  const MultiheadAttention attention({.embed_dim = E, .num_heads = H, .kdim = 7, .vdim = 8}, {});
  for (const Tensor& wrong : {m.attn_mask, floats({T, S}), mask({N * H, T, S})}) {
    expect_contradiction("is_causal", "attn_mask", [&] {
      attention.forward(m.query, m.key, m.value, {.attn_mask = wrong, .is_causal = true}, pass);
    });
  }
  const EncoderTensors e;
  expect_contradiction("is_causal", "src_mask", [&] {
    TransformerEncoderLayer(kLayer, {}).forward(e.src, {e.mask_, {}, true}, pass);
  });
  expect_contradiction("is_causal", "mask", [&] {
    TransformerEncoder({kLayer, 1}, {}).forward(e.src, {e.mask_, {}, true}, pass);
  });
  const DecoderTensors d;
  const TransformerDecoderLayer layer(kLayer, {});
  expect_contradiction("tgt_is_causal", "tgt_mask", [&] {
    layer.forward(d.tgt, d.memory, {.tgt_mask = d.tgt_mask, .tgt_is_causal = true}, pass);
  });
  expect_contradiction("memory_is_causal", "memory_mask", [&] {
    layer.forward(d.tgt, d.memory, {.memory_mask = d.memory_mask, .memory_is_causal = true}, pass);
  });
  const TransformerDecoder stack({kLayer, 1}, {});
  expect_contradiction("tgt_is_causal", "tgt_mask", [&] {
    stack.forward(d.tgt, d.memory, {.tgt_mask = d.tgt_mask, .tgt_is_causal = true}, pass);
  });
  expect_contradiction("memory_is_causal", "memory_mask", [&] {
    stack.forward(d.tgt, d.memory, {.memory_mask = d.memory_mask, .memory_is_causal = true}, pass);
  });
  const TransformerTensors x;
  const Transformer whole = transformer();
  expect_contradiction("src_is_causal", "src_mask", [&] {
    whole.forward(x.src, x.tgt, {.src_mask = x.src_mask, .src_is_causal = true}, pass);
  });
  expect_contradiction("tgt_is_causal", "tgt_mask", [&] {
    whole.forward(x.src, x.tgt, {.tgt_mask = x.tgt_mask, .tgt_is_causal = true}, pass);
  });
  expect_contradiction("memory_is_causal", "memory_mask", [&] {
    whole.forward(x.src, x.tgt, {.memory_mask = x.memory_mask, .memory_is_causal = true}, pass);
  });
}

// ---------------------------------------------------------------------- a failed call changes
// nothing

TEST(TorchBadInput, AFailedCallLeavesAttentionsAndGradientsAsTheyWere) {
  const Transformer module = transformer();
  const TransformerTensors x;
  Attentions attentions;
  attentions.encoder = {floats({1})};
  attentions.decoder = {floats({2})};
  attentions.cross = {floats({3})};
  Gradients gradients;
  TransformerArguments arguments = x.arguments();
  arguments.attentions.into = &attentions;
  for (Tensor TransformerArguments::*place :
       {&TransformerArguments::src_mask, &TransformerArguments::tgt_mask,
        &TransformerArguments::memory_key_padding_mask}) {
    TransformerArguments bad = arguments;
    bad.*place = floats({2, 2, 2});
    EXPECT_THROW(module.forward(x.src, x.tgt, bad, Pass::train(gradients, 1, 0)), Error);
  }
  ASSERT_EQ(attentions.encoder.size(), 1u);
  ASSERT_EQ(attentions.decoder.size(), 1u);
  ASSERT_EQ(attentions.cross.size(), 1u);
  EXPECT_EQ(attentions.encoder[0].shape(), Shape({1}));
  EXPECT_EQ(attentions.decoder[0].shape(), Shape({2}));
  EXPECT_EQ(attentions.cross[0].shape(), Shape({3}));
  for (const NamedParameter& parameter : parameters(module))
    EXPECT_FALSE(gradients.has(parameter.parameter)) << parameter.name;
}

TEST(TorchBadInput, ASquareSubsequentMaskOfNoSize) {
  EXPECT_NE(testing::error_of([] { Transformer::generate_square_subsequent_mask(-1); }).find("-1"),
            std::string::npos);
}

}  // namespace
}  // namespace rapt::nn::torch
