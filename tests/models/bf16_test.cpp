// An encoder-decoder that computes in bf16 with f32 parameters.
#include "rapt/base/runtime.h"
#include "rapt/ops/cross_entropy.h"
#include "rapt/optim/optimizer.h"
#include "tests/testing/translators.h"

namespace rapt::models {
namespace {

using namespace testing;

EncoderDecoderConfig config_of(const std::string& layout) {
  EncoderDecoderConfig config = small_config(layout);
  config.d_model = 48;
  config.dim_feedforward = 130;
  config.activation = "gelu";  // a unit of relu may open or close for a rounding
  config.dropout = 0.1;
  return config;
}

// The loss, then every parameter's gradient, of a step of a model with twins.
std::vector<Tensor> step(const EncoderDecoder& model, std::optional<DType> compute_type,
                         bool with_padding = false) {
  const SmallBatch batch = small_batch();
  Gradients gradients;
  const Pass pass({.training = true,
                   .seed = 5,
                   .step = 3,
                   .gradients = &gradients,
                   .compute_type = compute_type});
  Tensor logits, labels = batch.labels;
  if (with_padding) {
    const Padded source = padded(batch.source, batch.source_rows),
                 target = padded(batch.target, batch.target_rows);
    logits = model.forward(source.ids, source.rows, target.ids, target.rows, pass, source.mask,
                           target.mask);
    std::vector<int32_t> wide(static_cast<size_t>(logits.dim(0)), -100);
    const int32_t* label = batch.labels.data<int32_t>();
    for (const auto& [begin, count] : target.real) {
      std::copy_n(label, count, wide.begin() + begin);
      label += count;
    }
    labels = ids(wide);
  } else {
    logits = model.forward(batch.source, batch.source_rows, batch.target, batch.target_rows, pass);
  }
  EXPECT_EQ(logits.dtype(), compute_type.value_or(DType::f32));
  const Loss loss = cross_entropy(std::move(logits), labels, {.label_smoothing = 0.1});
  backward(loss.sum);
  std::vector<Tensor> all = {loss.sum.detach()};
  for (const auto& [name, gradient] : all_gradients(model, gradients)) {
    EXPECT_EQ(gradient.dtype(), DType::f32) << name;
    all.push_back(gradient);
  }
  return all;
}

class Bf16Models : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Layouts, Bf16Models, ::testing::Values("hand_built", "torch"));

TEST_P(Bf16Models, GradientsAreThoseOfF32ButForRounding) {
  const EncoderDecoder model = make_model(config_of(GetParam()), DType::f32);
  nn::make_twins(model);
  const std::vector<Tensor> got = step(model, DType::bf16), want = step(model, {});
  EXPECT_LE(difference(got[0], want[0]), 2e-3);
  for (size_t i = 1; i < want.size(); ++i) EXPECT_LE(difference(got[i], want[i]), 0.05) << i;
}

TEST_P(Bf16Models, PackedAndPaddedAgree) {
  const EncoderDecoder model = make_model(config_of(GetParam()), DType::f32);
  nn::make_twins(model);
  const std::vector<Tensor> packed = step(model, DType::bf16),
                            wide = step(model, DType::bf16, true);
  EXPECT_LE(difference(wide[0], packed[0]), 1e-3);
  for (size_t i = 1; i < wide.size(); ++i) EXPECT_LE(difference(wide[i], packed[i]), 0.02) << i;
}

TEST_P(Bf16Models, OneThreadAndManyAndTheSameRunTwiceAgreeInEveryBit) {
  const EncoderDecoder model = make_model(config_of(GetParam()), DType::f32);
  nn::make_twins(model);
  std::vector<Tensor> first;
  for (const int threads : {1, 1, 2, 3}) {
    Runtime runtime({.threads = threads, .log = {}});
    const Runtime::Scope scope(runtime);
    const std::vector<Tensor> now = step(model, DType::bf16);
    if (first.empty()) first = now;
    for (size_t i = 0; i < now.size(); ++i)
      EXPECT_TRUE(same_bits(now[i], first[i])) << i << " with " << threads;
  }
}

TEST(Bf16Training, TheOptimizerKeepsTheTwins) {
  const EncoderDecoder model = make_model(config_of("torch"), DType::f32);
  nn::make_twins(model);
  const auto optimizer = optim::make_adamw(nn::parameters(model));
  const SmallBatch batch = small_batch();
  Gradients gradients;
  PassOptions options{.gradients = &gradients, .compute_type = DType::bf16};
  const auto loss = [&] {
    return cross_entropy(model.forward(batch.source, batch.source_rows, batch.target,
                                       batch.target_rows, Pass(options)),
                         batch.labels);
  };
  const Loss before = loss();
  backward(before.sum);
  optimizer->step(gradients, 1.0 / static_cast<double>(before.count), 1e-2);
  EXPECT_LT(loss().mean(), before.mean());
  int twins = 0;
  for (const NamedParameter& p : nn::parameters(model)) {
    if (!p.parameter.twin().defined()) continue;
    ++twins;
    EXPECT_TRUE(same_bits(p.parameter.twin(), p.parameter.value().to(DType::bf16))) << p.name;
  }
  EXPECT_GT(twins, 10);
}

}  // namespace
}  // namespace rapt::models
