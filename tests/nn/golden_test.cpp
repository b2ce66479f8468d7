// Layers against PyTorch's f64 numbers: results, weights, gradients of inputs and parameters.
#include "tests/golden/golden.h"

#include "rapt/nn/attention.h"
#include "rapt/nn/decoder.h"
#include "rapt/nn/encoder.h"
#include "rapt/nn/positions.h"

namespace rapt {
namespace {

using testing::expect_agrees;
using testing::Golden;
using testing::NamesInFile;

constexpr double kTolerance = 1e-10;
const nn::Init kToBeLoaded{.rng = nullptr, .dtype = DType::f64};

Tensor packed(const Tensor& x) { return x.reshape({x.dim(0) * x.dim(1), x.dim(2)}); }
Rows rows_of(const Tensor& x) { return Rows::equal(x.dim(0), x.dim(1)); }
// A padding mask (B, T) over equal lengths as one over packed keys.
Mask without(const Tensor& padding) { return Mask::drop(padding.reshape({padding.numel()})); }

void expect_gradients(const NamesInFile& names, Gradients& gradients, const Golden& of) {
  double floor = 0;
  names.each_gradient(gradients, [&](const std::string& name, const Tensor&) {
    floor = std::max(floor, 1e-3 * testing::largest(of.floats("grad." + name)));
  });
  names.each_gradient(gradients, [&](const std::string& name, const Tensor& gradient) {
    expect_agrees(gradient, of.floats("grad." + name), kTolerance, "grad." + name, floor);
  });
}

TEST(NnGolden, AttentionAgreesWithPyTorchsMultiheadAttention) {
  for (const char* name : {"self", "self_without_bias", "self_causal", "cross", "cross_padded"}) {
    SCOPED_TRACE(name);
    const Golden of = Golden("nn/multihead_attention.safetensors").at(name);
    const Tensor query = of.floats("query");
    const bool crosses = of.has("memory");
    const nn::Attention layer({.d_model = query.dim(2),
                               .nhead = of.whole_number("nhead"),
                               .bias = of.has("param.in_proj_bias")},
                              kToBeLoaded);
    const NamesInFile names(layer, "torch", "encoder.layers.0.self_attention",
                            "transformer.encoder.layers.0.self_attn.");
    names.load(of);
    Mask mask;
    if (of.has("attn_mask")) mask = Mask::drop(of.mask("attn_mask"));
    if (of.has("key_padding_mask")) mask = without(of.mask("key_padding_mask"));

    Gradients gradients;
    AttentionCapture capture;
    const Pass pass({.gradients = &gradients, .capture = &capture});
    const Tensor x = gradients.watch(packed(query));
    const Tensor memory = crosses ? gradients.watch(packed(of.floats("memory"))) : x;
    const Tensor y =
        layer.forward(x, rows_of(query), memory,
                      crosses ? rows_of(of.floats("memory")) : rows_of(query), mask, pass);
    backward(y, packed(of.floats("d_output")));

    expect_agrees(y, of.floats("output"), kTolerance, "output");
    ASSERT_EQ(capture.entries.size(), 1u);
    expect_agrees(capture.entries[0].weights, of.floats("attn_weights"), kTolerance, "weights");
    expect_agrees(gradients.of(x), of.floats("d_query"), kTolerance, "d_query");
    if (crosses) expect_agrees(gradients.of(memory), of.floats("d_memory"), kTolerance, "d_memory");
    expect_gradients(names, gradients, of);
  }
}

nn::LayerOptions layer_options(const std::string& name) {
  return {.d_model = 6,
          .nhead = 2,
          .dim_feedforward = 9,
          .dropout = 0,
          .activation = name.ends_with("gelu") ? "gelu" : "relu",
          .norm_first = name.starts_with("norm_first")};
}

const char* const kLayers[] = {"norm_after_relu", "norm_after_gelu", "norm_first_relu",
                               "norm_first_gelu"};

TEST(NnGolden, EncoderLayerAgreesWithPyTorch) {
  for (const char* name : kLayers) {
    SCOPED_TRACE(name);
    const Golden of = Golden("nn/encoder_layer.safetensors").at(name);
    const nn::EncoderLayer layer(layer_options(name), kToBeLoaded);
    const NamesInFile names(layer, "torch", "encoder.layers.0", "transformer.encoder.layers.0.");
    names.load(of);
    const Tensor src = of.floats("src");
    Gradients gradients;
    const Tensor x = gradients.watch(packed(src));
    const Tensor y =
        layer.forward(x, rows_of(src), without(of.mask("padding")), Pass::train(gradients, 0, 0));
    backward(y, packed(of.floats("d_y")));
    expect_agrees(y, of.floats("y"), kTolerance, "y");
    expect_agrees(gradients.of(x), of.floats("d_src"), kTolerance, "d_src");
    expect_gradients(names, gradients, of);
  }
}

TEST(NnGolden, DecoderLayerAgreesWithPyTorch) {
  for (const char* name : kLayers) {
    SCOPED_TRACE(name);
    const Golden of = Golden("nn/decoder_layer.safetensors").at(name);
    const nn::DecoderLayer layer(layer_options(name), kToBeLoaded);
    const NamesInFile names(layer, "torch", "decoder.layers.0", "transformer.decoder.layers.0.");
    names.load(of);
    const Tensor tgt = of.floats("tgt"), memory = of.floats("memory");
    Gradients gradients;
    const Tensor x = gradients.watch(packed(tgt)), source = gradients.watch(packed(memory));
    const Tensor y = layer.forward(x, rows_of(tgt), Mask::causal(),
                                   {source, rows_of(memory), without(of.mask("padding"))},
                                   Pass::train(gradients, 0, 0));
    backward(y, packed(of.floats("d_y")));
    expect_agrees(y, of.floats("y"), kTolerance, "y");
    expect_agrees(gradients.of(x), of.floats("d_tgt"), kTolerance, "d_tgt");
    expect_agrees(gradients.of(source), of.floats("d_memory"), kTolerance, "d_memory");
    expect_gradients(names, gradients, of);
  }
}

TEST(NnGolden, SinusoidsAgreeWithTheFormulaForEvenAndOddWidths) {
  const Golden of("positions/sinusoids.safetensors");
  const std::vector<int32_t> positions = of.ids("positions").to_vector<int32_t>();
  const int64_t length = 1 + *std::max_element(positions.begin(), positions.end());
  for (const int64_t C : {1, 2, 5, 29, 64, 127}) {
    const Tensor table = nn::sinusoidal_positions(length, C, DType::f64);
    const Tensor wanted = of.floats("width." + std::to_string(C));
    ASSERT_EQ(table.dim(1), C);
    for (size_t i = 0; i < positions.size(); ++i)
      expect_agrees(table.rows(positions[i], 1), wanted.rows(static_cast<int64_t>(i), 1), 1e-10,
                    "width " + std::to_string(C) + ", position " + std::to_string(positions[i]), 1);
  }
}

}  // namespace
}  // namespace rapt
