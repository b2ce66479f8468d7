// Every argument of the official modules' constructors with each thing that cannot be: one error
// that says argument, expected and got.
#include <limits>

#include "rapt/nn/torch/multihead_attention.h"
#include "rapt/nn/torch/transformer.h"
#include "tests/nn/torch/refused.h"

namespace rapt::nn::torch {
namespace {

constexpr int64_t H = 2, E = 6;

template <class Options>
struct BadOption {
  const char* argument;
  std::function<void(Options&)> spoil;
};

template <class Options, class Build>
void expect_options_refused(const Options& good, const Build& build,
                            const std::vector<BadOption<Options>>& table) {
  build(good);  // does not throw
  for (const BadOption<Options>& bad : table) {
    Options options = good;
    bad.spoil(options);
    expect_refused(bad.argument, [&] { build(options); });
  }
}

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(TorchBadOptions, R09_ConstructorOfMultiheadAttention) {
  using O = MultiheadAttentionOptions;
  expect_options_refused<O>({.embed_dim = E, .num_heads = H},
                            [](const O& o) { MultiheadAttention(o, {}); },
                            {{"embed_dim", [](O& o) { o.embed_dim = 0; }},
                             {"embed_dim", [](O& o) { o.embed_dim = -6; }},
                             {"num_heads", [](O& o) { o.num_heads = 0; }},
                             {"num_heads", [](O& o) { o.num_heads = -1; }},
                             {"num_heads", [](O& o) { o.num_heads = 4; }},
                             {"num_heads", [](O& o) { o.num_heads = 2 * E; }},
                             {"kdim", [](O& o) { o.kdim = 0; }},
                             {"vdim", [](O& o) { o.vdim = -1; }},
                             {"dropout", [](O& o) { o.dropout = -0.1; }},
                             {"dropout", [](O& o) { o.dropout = 1; }},
                             {"dropout", [](O& o) { o.dropout = kNaN; }}});
}

template <class O>
std::vector<BadOption<O>> bad_layer_options(
    const std::function<TransformerLayerOptions&(O&)>& layer) {
  using L = TransformerLayerOptions;
  std::vector<BadOption<O>> all;
  const auto add = [&](const char* argument, std::function<void(L&)> spoil) {
    all.push_back({argument, [=](O& o) { spoil(layer(o)); }});
  };
  add("d_model", [](L& o) { o.d_model = 0; });
  add("nhead", [](L& o) { o.nhead = 0; });
  add("nhead", [](L& o) { o.nhead = -2; });
  add("nhead", [](L& o) { o.nhead = 4; });
  add("nhead", [](L& o) { o.nhead = 2 * E; });
  add("dim_feedforward", [](L& o) { o.dim_feedforward = 0; });
  add("dropout", [](L& o) { o.dropout = -1; });
  add("dropout", [](L& o) { o.dropout = 1; });
  add("dropout", [](L& o) { o.dropout = kNaN; });
  add("layer_norm_eps", [](L& o) { o.layer_norm_eps = 0; });
  add("layer_norm_eps", [](L& o) { o.layer_norm_eps = -1; });
  add("layer_norm_eps", [](L& o) { o.layer_norm_eps = kNaN; });
  return all;
}

const TransformerLayerOptions kLayer{.d_model = E, .nhead = H, .dim_feedforward = 5, .dropout = 0};

TEST(TorchBadOptions, R09_ConstructorsOfLayersAndStacks) {
  using L = TransformerLayerOptions;
  const auto self = [](L& o) -> L& { return o; };
  expect_options_refused<L>(
      kLayer, [](const L& o) { TransformerEncoderLayer(o, {}); }, bad_layer_options<L>(self));
  expect_options_refused<L>(
      kLayer, [](const L& o) { TransformerDecoderLayer(o, {}); }, bad_layer_options<L>(self));

  auto encoder = bad_layer_options<TransformerEncoderOptions>(
      [](TransformerEncoderOptions& o) -> L& { return o.encoder_layer; });
  encoder.push_back({"num_layers", [](TransformerEncoderOptions& o) { o.num_layers = -1; }});
  expect_options_refused<TransformerEncoderOptions>(
      {kLayer, 1}, [](const TransformerEncoderOptions& o) { TransformerEncoder(o, {}); }, encoder);

  auto decoder = bad_layer_options<TransformerDecoderOptions>(
      [](TransformerDecoderOptions& o) -> L& { return o.decoder_layer; });
  decoder.push_back({"num_layers", [](TransformerDecoderOptions& o) { o.num_layers = -1; }});
  expect_options_refused<TransformerDecoderOptions>(
      {kLayer, 1}, [](const TransformerDecoderOptions& o) { TransformerDecoder(o, {}); }, decoder);
}

TEST(TorchBadOptions, R09_ConstructorOfTransformer) {
  using O = TransformerOptions;
  expect_options_refused<O>(
      {.d_model = E, .nhead = H, .num_encoder_layers = 1, .num_decoder_layers = 1},
      [](const O& o) { Transformer(o, {}); },
      {{"d_model", [](O& o) { o.d_model = 0; }},
       {"nhead", [](O& o) { o.nhead = 0; }},
       {"nhead", [](O& o) { o.nhead = 4; }},
       {"nhead", [](O& o) { o.nhead = 1024; }},
       {"num_encoder_layers", [](O& o) { o.num_encoder_layers = -1; }},
       {"num_decoder_layers", [](O& o) { o.num_decoder_layers = -1; }},
       {"dim_feedforward", [](O& o) { o.dim_feedforward = -5; }},
       {"dropout", [](O& o) { o.dropout = 1; }},
       {"dropout", [](O& o) { o.dropout = kNaN; }},
       {"layer_norm_eps", [](O& o) { o.layer_norm_eps = 0; }},
       {"layer_norm_eps", [](O& o) { o.layer_norm_eps = kNaN; }}});
}

TEST(TorchBadOptions, ActivationsThatNobodyKnows) {
  using Function = std::function<Tensor(Tensor)>;
  TransformerLayerOptions layer = kLayer;
  TransformerOptions whole;
  for (Activation* option : {&layer.activation, &whole.activation}) {
    for (const char* name : {"tanh", "", "RELU"})
      expect_refused("activation", [&] { *option = name; });
    expect_refused("activation", [&] { *option = Function(); });
    EXPECT_EQ(option->name(), "relu");  // as it was
  }
}

}  // namespace
}  // namespace rapt::nn::torch
