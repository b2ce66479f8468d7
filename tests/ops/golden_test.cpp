// The ops against PyTorch's f64 numbers, results and gradients, in f64 and in f32.
#include "tests/golden/golden.h"

#include "rapt/ops/attention.h"
#include "rapt/ops/cross_entropy.h"
#include "rapt/ops/elementwise.h"
#include "rapt/ops/embedding.h"
#include "rapt/ops/layer_norm.h"
#include "rapt/ops/linear.h"
#include "rapt/ops/softmax.h"

namespace rapt {
namespace {

using testing::expect_agrees;
using testing::Golden;

class OpsGolden : public ::testing::TestWithParam<DType> {
 protected:
  double tolerance() const { return GetParam() == DType::f64 ? 1e-11 : 3e-6; }

  // Reads the inputs of a case, computes y from them, sends d_y back, and compares y and d_NAME of
  // every input with what is stored.
  void check(const Golden& of, const std::vector<std::string>& inputs,
             const std::function<Tensor(const std::vector<Tensor>&)>& function) {
    Gradients gradients;
    std::vector<Tensor> watched;
    for (const std::string& name : inputs) {
      const Tensor x = of.floats(name, GetParam());
      watched.push_back(gradients.watch(shaped(name, x)));
    }
    const Tensor y = function(watched);
    expect_agrees(y, of.floats("y"), tolerance(), "y");
    backward(y, of.floats("d_y", GetParam()).reshape(y.shape()));
    for (size_t i = 0; i < inputs.size(); ++i)
      expect_agrees(gradients.of(watched[i]), of.floats("d_" + inputs[i]), tolerance(),
                    "d_" + inputs[i]);
  }

  // (B, T, H, D) as the packed (B T, H, D); other shapes as they are.
  static Tensor shaped(const std::string& name, const Tensor& x) {
    if (x.rank() != 4 || name == "bias") return x;
    return x.reshape({x.dim(0) * x.dim(1), x.dim(2), x.dim(3)});
  }

  // Attention over sentences of equal lengths.
  void check_attention(const std::string& name, const Mask& mask = {}) {
    SCOPED_TRACE(name);
    const Golden of = Golden("ops/attention.safetensors").at(name);
    const Tensor q = of.floats("q"), k = of.floats("k");
    const Rows queries = Rows::equal(q.dim(0), q.dim(1)), keys = Rows::equal(k.dim(0), k.dim(1));
    std::vector<std::string> inputs{"q", "k", "v"};
    if (of.has("bias")) inputs.push_back("bias");
    const auto options = [](const std::vector<Tensor>& x) {
      return x.size() > 3 ? AttentionOptions{.bias = x[3]} : AttentionOptions{};
    };
    check(of, inputs, [&](const std::vector<Tensor>& x) {
      return attention(x[0], queries, x[1], x[2], keys, mask, options(x));
    });
    if (!of.has("weights")) return;
    check(of, inputs, [&](const std::vector<Tensor>& x) {
      const AttentionResult result =
          attention_with_weights(x[0], queries, x[1], x[2], keys, mask, options(x));
      expect_agrees(result.weights, of.floats("weights"), tolerance(), "weights");
      return result.context;
    });
  }
};

INSTANTIATE_TEST_SUITE_P(Types, OpsGolden, ::testing::Values(DType::f64, DType::f32),
                         [](const auto& of) { return std::string(dtype_name(of.param)); });

TEST_P(OpsGolden, FunctionsAgreeWithPyTorch) {
  const Golden file("ops/functions.safetensors");
  const std::pair<const char*, Tensor (*)(const Tensor&)> functions[] = {
      {"relu", [](const Tensor& x) { return relu(x); }},
      {"gelu", gelu},
      {"gelu_tanh", gelu_tanh},
      {"softmax", softmax}};
  for (const auto& [name, function] : functions) {
    SCOPED_TRACE(name);
    check(file.at(name), {"x"},
          [&, f = function](const std::vector<Tensor>& x) { return f(x[0]); });
  }
  const Golden logarithm = file.at("log_softmax");
  expect_agrees(log_softmax(logarithm.floats("x", GetParam())), logarithm.floats("y"), tolerance(),
                "log_softmax");
}

TEST_P(OpsGolden, LayersOfRowsAgreeWithPyTorch) {
  const Golden file("ops/functions.safetensors");
  for (const char* name : {"layer_norm", "layer_norm_large_epsilon"}) {
    SCOPED_TRACE(name);
    const Golden of = file.at(name);
    check(of, {"x", "weight", "bias"}, [&](const std::vector<Tensor>& x) {
      return layer_norm(x[0], x[1], x[2], of.number("epsilon"));
    });
  }
  check(file.at("linear"), {"x", "weight", "bias"},
        [](const std::vector<Tensor>& x) { return linear(x[0], x[1], x[2]); });
  const Golden lookup = file.at("embedding");
  check(lookup, {"table"},
        [&](const std::vector<Tensor>& x) { return embedding(lookup.ids("ids"), x[0]); });
}

TEST_P(OpsGolden, CrossEntropyAgreesWithPyTorch) {
  const Golden file("ops/cross_entropy.safetensors");
  for (const char* name : {"plain", "padded", "smoothed", "smoothed_padded"}) {
    SCOPED_TRACE(name);
    const Golden of = file.at(name);
    Gradients gradients;
    const Tensor logits = gradients.watch(of.floats("logits", GetParam()));
    const Loss loss =
        cross_entropy(logits, of.ids("targets"),
                      {.ignore_index = static_cast<int32_t>(of.whole_number("ignore_index")),
                       .label_smoothing = of.number("smoothing")});
    expect_agrees(loss.sum, of.floats("sum"), tolerance(), "sum");
    EXPECT_EQ(loss.count, of.whole_number("count"));
    EXPECT_NEAR(loss.mean(), of.number("mean"), tolerance() * of.number("mean"));
    backward(loss.sum,
             Tensor::full(loss.sum.shape(), GetParam(), 1.0 / static_cast<double>(loss.count)));
    expect_agrees(gradients.of(logits), of.floats("d_logits"), tolerance(), "d_logits");
  }
}

TEST_P(OpsGolden, AttentionAgreesWithPyTorch) {
  const Golden file("ops/attention.safetensors");
  const auto keep = [&](const char* name) { return file.at(name).mask("keep"); };
  check_attention("plain");
  check_attention("long");
  check_attention("causal", Mask::causal());
  check_attention("causal", Mask::keep(keep("causal").reshape({6, 6})));
  check_attention("lengths", Mask::keep(keep("lengths").reshape({2 * 7})));
  check_attention("scattered", Mask::keep(keep("scattered")));
  check_attention("nothing_seen", Mask::keep(keep("nothing_seen")));
  check_attention("bias");
  check_attention("bias_and_mask", Mask::keep(keep("bias_and_mask")));
}

// The keys that the mask of `lengths` hides are not there at all.
TEST_P(OpsGolden, AttentionOverPackedKeysAgreesWithPyTorchsMask) {
  const Golden of = Golden("ops/attention.safetensors").at("lengths");
  const auto packed = [&](const char* name) {
    const Tensor x = shaped(name, of.floats(name, GetParam()));  // (2 x 7, H, D)
    Tensor y = Tensor::empty({10, x.dim(1), x.dim(2)}, GetParam());
    std::memcpy(y.raw(), x.raw(), static_cast<size_t>(y.numel() * size_of(GetParam())));
    return y;  // sentences of 7 and 3: the first ten rows
  };
  const Tensor y = attention(shaped("q", of.floats("q", GetParam())), Rows::equal(2, 4),
                             packed("k"), packed("v"), Rows::packed({7, 3}));
  expect_agrees(y, of.floats("y"), tolerance(), "y");
}

}  // namespace
}  // namespace rapt
