// Ops in bf16 against the same ops in f64 on the same numbers: results and gradients.
#include <functional>

#include "rapt/base/runtime.h"
#include "rapt/ops/attention.h"
#include "rapt/ops/cross_entropy.h"
#include "rapt/ops/elementwise.h"
#include "rapt/ops/embedding.h"
#include "rapt/ops/feed_forward.h"
#include "rapt/ops/layer_norm.h"
#include "rapt/ops/linear.h"
#include "rapt/ops/projection_loss.h"
#include "rapt/ops/select.h"
#include "rapt/ops/softmax.h"
#include "tests/testing/tensors.h"

namespace rapt {
namespace {

using testing::difference;
using testing::error_of;
using testing::ids;
using testing::random_tensor;
using testing::same_bits;
using testing::values_of;

// Some roundings of activations, relative to the largest element.
constexpr double kTolerance = 1.0 / 100;

// What an op reads: activations in the compute type, or tables, gains and the like, which stay f32.
struct Input {
  Shape shape;
  bool parameter = false;
};
using Op = std::function<Tensor(const std::vector<Tensor>& x)>;

// The result, then the gradients of all inputs, in `type`.
std::vector<Tensor> run(DType type, const std::vector<Input>& inputs, const Op& op) {
  Gradients gradients;
  std::vector<Tensor> x;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor values = random_tensor(inputs[i].shape, i + 1).to(DType::bf16);
    x.push_back(gradients.watch(values.to(inputs[i].parameter ? precise(type) : type)));
  }
  const Tensor y = op(x);
  backward(y, random_tensor(y.shape(), 99).to(DType::bf16).to(y.dtype()));
  std::vector<Tensor> all = {y.detach()};
  for (const Tensor& input : x) all.push_back(gradients.of(input));
  return all;
}

void expect_close(const char* what, const std::vector<Input>& inputs, const Op& op) {
  const std::vector<Tensor> bf16s = run(DType::bf16, inputs, op);
  const std::vector<Tensor> want = run(DType::f64, inputs, op);
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_LE(difference(bf16s[i], want[i]), kTolerance) << what << ", " << i;
    if (i > 0) {
      EXPECT_EQ(bf16s[i].dtype(), inputs[i - 1].parameter ? DType::f32 : DType::bf16) << what;
    }
  }
}

const Rows kRows = Rows::packed({5, 1, 27});
constexpr int64_t kN = 33;

TEST(Bf16Ops, ElementwiseFunctionsAgreeWithF64) {
  const Shape shape = {kN, 70};
  const kernels::Dropout site = Pass({.training = true}).dropout(0.25);
  using X = const std::vector<Tensor>&;
  expect_close("add", {{shape}, {shape}}, [](X x) { return add(x[0], x[1]); });
  expect_close("add twice", {{shape}}, [](X x) { return add(x[0], x[0]); });
  expect_close("multiply", {{shape}, {shape}}, [](X x) { return multiply(x[0], x[1]); });
  expect_close("scale", {{shape}}, [](X x) { return scale(x[0], 1.7); });
  expect_close("relu", {{shape}}, [](X x) { return relu(x[0]); });
  expect_close("gelu", {{shape}}, [](X x) { return gelu(x[0]); });
  expect_close("gelu_tanh", {{shape}}, [](X x) { return gelu_tanh(x[0]); });
  expect_close("dropout", {{shape}}, [&](X x) { return dropout(x[0], kRows, site); });
  expect_close("dropout_add", {{shape}, {shape}},
               [&](X x) { return dropout_add(x[0], x[1], kRows, site); });
  expect_close("softmax", {{shape}}, [](X x) { return softmax(x[0]); });
  expect_close("mean_rows", {{shape}}, [](X x) { return mean_rows(x[0], kRows); });
}

TEST(Bf16Ops, NormsTakeParametersOfF32) {
  const Shape shape = {kN, 70}, row = {70};
  const kernels::Dropout site = Pass({.training = true}).dropout(0.25);
  using X = const std::vector<Tensor>&;
  expect_close("layer_norm", {{shape}, {row, true}, {row, true}},
               [](X x) { return layer_norm(x[0], x[1], x[2], 1e-5); });
  expect_close("residual_layer_norm", {{shape}, {shape}, {row, true}, {row, true}},
               [&](X x) { return residual_layer_norm(x[0], x[1], kRows, site, x[2], x[3], 1e-5); });
}

TEST(Bf16Ops, EmbeddingsComeOutOfF32Tables) {
  std::vector<int32_t> which;
  for (int64_t i = 0; i < kN; ++i) which.push_back(static_cast<int32_t>(i * 5 % 9));
  const kernels::Dropout site = Pass({.training = true}).dropout(0.25);
  const Tensor positions = random_tensor({40, 24}, 50);
  expect_close("embedding", {{{9, 24}, true}}, [&](const std::vector<Tensor>& x) {
    const DType type = x[0].dtype() == DType::f64 ? DType::f64 : DType::bf16;
    return embedding(ids(which), x[0], 3, positions.to(x[0].dtype()), kRows, site, type);
  });
}

TEST(Bf16Ops, AttentionAgreesWithF64InEveryLayoutOfHeads) {
  const Rows keys = Rows::packed({4, 9, 30});
  const Mask mask = Mask::window(20);
  const kernels::Dropout dropped = Pass({.training = true}).dropout(0.25);
  using X = const std::vector<Tensor>&;
  expect_close("views of one product", {{{kN, 3 * 64}}}, [&](X x) {
    const auto head = [&](int64_t i) { return x[0].columns(i * 64, 64).reshape({kN, 4, 16}); };
    return attention(head(0), kRows, head(1), head(2), kRows, Mask::causal(), {.dropout = dropped});
  });
  expect_close(
      "cross-attention, grouped heads", {{{kN, 4, 16}}, {{43, 2, 16}}, {{43, 2, 24}}},
      [&](X x) { return attention(x[0], kRows, x[1], x[2], keys, mask, {.dropout = dropped}); });
  const Rows equal = Rows::packed({7, 7, 7});
  expect_close("heads first, with a bias",
               {{{3, 4, 7, 16}}, {{3, 4, 7, 16}}, {{3, 4, 7, 8}}, {{3, 4, 7, 7}, true}}, [&](X x) {
                 return attention(x[0], equal, x[1], x[2], equal, {}, {.bias = ScoreBias(x[3])});
               });
  expect_close("weights", {{{kN, 4, 16}}, {{43, 4, 16}}, {{43, 4, 16}}}, [&](X x) {
    return attention_with_weights(x[0], kRows, x[1], x[2], keys, mask).weights;
  });
}

// huggingface/transformers#17306: left padding under a causal mask, scores far below zero.
TEST(Bf16Ops, R12_MasksAreCombinedAsPermissionsSoNothingOverflows) {
  const Rows rows = Rows::equal(2, 2);  // [pad, token] and [pad, pad]
  const Mask mask = Mask::causal() & Mask::keep(testing::bools({0, 1, 0, 0}, {4}));
  for (const double size : {4.0, 1e18}) {
    Gradients gradients;
    const Tensor q = gradients.watch(Tensor::full({4, 1, 4}, DType::bf16, size)),
                 k = gradients.watch(Tensor::full({4, 1, 4}, DType::bf16, -size)),
                 v = gradients.watch(random_tensor({4, 1, 4}, 1, DType::f32).to(DType::bf16));
    const auto result = attention_with_weights(q, rows, k, v, rows, mask);
    EXPECT_EQ(values_of(result.weights), (std::vector<double>{0, 0, 0, 1, 0, 0, 0, 0}));
    EXPECT_TRUE(same_bits(result.context.rows(1, 1), v.rows(1, 1)));
    backward(result.context, Tensor::full({4, 1, 4}, DType::bf16, 1));
    for (const Tensor& x : {q, k}) {
      for (const double d : values_of(gradients.of(x))) EXPECT_EQ(d, 0);
    }
    EXPECT_EQ(values_of(gradients.of(v)),
              (std::vector<double>{0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0}));
  }
}

TEST(Bf16Ops, LossesAreF32) {
  std::vector<int32_t> targets;
  for (int64_t i = 0; i < kN; ++i) targets.push_back(static_cast<int32_t>(i % 5 == 0 ? -100 : i));
  const auto loss = [&](DType type) {
    Gradients gradients;
    Tensor logits =
        gradients.watch(random_tensor({kN, 40}, 1, DType::f64, -4, 4).to(DType::bf16).to(type));
    Loss result = cross_entropy(logits, ids(targets), {.label_smoothing = 0.1});
    backward(result.sum);
    return std::vector<Tensor>{result.sum.detach(), gradients.of(logits)};
  };
  const std::vector<Tensor> got = loss(DType::bf16), want = loss(DType::f64);
  EXPECT_EQ(got[0].dtype(), DType::f32);
  EXPECT_LE(difference(got[0], want[0]), 1e-5);
  EXPECT_LE(difference(got[1], want[1]), kTolerance);
}

// A linear layer of a pass that computes in bf16: its gradients, and those of the master in f64.
struct Layer {
  Parameter w, b;
  explicit Layer(DType type)
      : w(random_tensor({19, 33}, 1).to(DType::bf16).to(type)), b(random_tensor({19}, 2, type)) {}

  std::vector<Tensor> run(DType compute) {
    Gradients gradients;
    const Pass pass({.gradients = &gradients, .compute_type = compute});
    Tensor x = gradients.watch(random_tensor({kN, 33}, 3).to(DType::bf16).to(compute));
    // Rows of the weight alone as well, as attention uses it: both gradients meet in one buffer.
    const Tensor y = linear(x, pass.use_matrix(w), pass.use(b));
    const Tensor part = linear(x, pass.use_matrix(w, 4, 6), pass.use(b, 4, 6));
    backward(y, random_tensor(y.shape(), 4).to(DType::bf16).to(compute));
    backward(part, random_tensor(part.shape(), 5).to(DType::bf16).to(compute));
    return {y.detach(), part.detach(), gradients.of(x), gradients.of(w), gradients.of(b)};
  }
};

// Rows enough for tiles, sizes that fill none.
TEST(Bf16Ops, FeedForwardAgreesWithF64) {
  constexpr int64_t kM = 150, kIn = 70, kHidden = 530, kOut = 45;
  const Rows rows = Rows::packed({100, 50});
  const kernels::Dropout dropped = Pass({.training = true}).dropout(0.25);
  for (const auto f :
       {kernels::Activation::relu, kernels::Activation::gelu, kernels::Activation::gelu_tanh}) {
    for (const kernels::Dropout& site : {kernels::Dropout(), dropped}) {
      const auto run = [&](DType parameters, DType compute) {
        const auto drawn = [&](const Shape& shape, uint64_t seed) {
          Parameter p(random_tensor(shape, seed).to(DType::bf16).to(parameters));
          if (compute == DType::bf16) p.make_twin();
          return p;
        };
        const Parameter w1 = drawn({kHidden, kIn}, 1), b1 = drawn({kHidden}, 2),
                        w2 = drawn({kOut, kHidden}, 3), b2 = drawn({kOut}, 4);
        Gradients gradients;
        const Pass pass({.gradients = &gradients, .compute_type = compute});
        const Tensor x = gradients.watch(random_tensor({kM, kIn}, 5).to(DType::bf16).to(compute));
        const Tensor y = feed_forward(x, {pass.use_matrix(w1), pass.use(b1)}, f, rows, site,
                                      {pass.use_matrix(w2), pass.use(b2)});
        backward(y, random_tensor(y.shape(), 6).to(DType::bf16).to(compute));
        return std::vector<Tensor>{y.detach(),       gradients.of(x),  gradients.of(w1),
                                   gradients.of(b1), gradients.of(w2), gradients.of(b2)};
      };
      const auto got = run(DType::f32, DType::bf16), want = run(DType::f64, DType::f64);
      for (size_t i = 0; i < want.size(); ++i)
        EXPECT_LE(difference(got[i], want[i]), kTolerance) << i;
    }
  }
}

TEST(Bf16Ops, LinearUsesTheTwinAndGivesTheMasterAnF32Gradient) {
  Layer narrow(DType::f32), wide(DType::f64);
  EXPECT_NE(error_of([&] { narrow.run(DType::bf16); }).find("make_twins"), std::string::npos);
  narrow.w.make_twin();
  const std::vector<Tensor> got = narrow.run(DType::bf16), want = wide.run(DType::f64);
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_LE(difference(got[i], want[i]), i < 3 ? kTolerance : 1e-5) << i;
  EXPECT_EQ(got[3].dtype(), DType::f32);
  EXPECT_EQ(got[4].dtype(), DType::f32);
}

TEST(Bf16Ops, TheProjectionsLossInChunksGivesTheMasterAnF32Gradient) {
  std::vector<int32_t> targets;
  for (int64_t i = 0; i < kN; ++i)
    targets.push_back(static_cast<int32_t>(i % 5 == 0 ? -100 : i % 19));
  const auto run = [&](Layer layer, DType compute) {
    if (compute == DType::bf16) layer.w.make_twin();
    Gradients gradients;
    const Pass pass({.gradients = &gradients, .compute_type = compute});
    Tensor x = gradients.watch(random_tensor({kN, 33}, 3).to(DType::bf16).to(compute));
    const Loss loss = projection_loss(x, pass.use_matrix(layer.w), pass.use(layer.b), ids(targets),
                                      {.label_smoothing = 0.1}, 10);
    backward(loss.sum);
    return std::vector<Tensor>{loss.sum.detach(), gradients.of(x), gradients.of(layer.w),
                               gradients.of(layer.b)};
  };
  const std::vector<Tensor> got = run(Layer(DType::f32), DType::bf16),
                            want = run(Layer(DType::f64), DType::f64);
  EXPECT_LE(difference(got[0], want[0]), 1e-3);
  for (size_t i = 1; i < want.size(); ++i) EXPECT_LE(difference(got[i], want[i]), 0.02) << i;
  EXPECT_EQ(got[0].dtype(), DType::f32);
  EXPECT_EQ(got[2].dtype(), DType::f32);
}

TEST(Bf16Ops, TypesThatDoNotGoTogetherAreErrors) {
  const Tensor x = random_tensor({2, 3}, 1, DType::bf16), w = random_tensor({4, 3}, 2, DType::bf16);
  const Tensor narrow = random_tensor({4}, 3, DType::bf16);
  EXPECT_NE(error_of([&] { linear(x, w, narrow); }).find("bias of f32"), std::string::npos);
  const Tensor gain = random_tensor({3}, 3, DType::bf16);
  EXPECT_NE(error_of([&] { layer_norm(x, gain, {}, 1e-5); }).find("gain of f32"),
            std::string::npos);
  const Parameter master(random_tensor({2, 3}, 1));
  const Pass pass({.compute_type = DType::bf16});
  EXPECT_NE(error_of([&] { pass.use_matrix(master); }).find("parameters of f32"),
            std::string::npos);
}

}  // namespace
}  // namespace rapt
