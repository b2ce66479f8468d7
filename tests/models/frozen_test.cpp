// A model frozen for inference in f32 computes what it computed, faster and for inference alone.
#include "rapt/models/checkpoint.h"
#include "tests/testing/translators.h"

namespace rapt::models {
namespace {

using namespace testing;

// Wide enough for whole panels in every projection.
EncoderDecoderConfig wide_config(TieEmbeddings tie) {
  EncoderDecoderConfig config = small_config("rapt");
  config.d_model = 64;
  config.nhead = 2;
  config.d_qk = config.d_v = 32;
  config.dim_feedforward = 96;
  config.tie_embeddings = tie;
  return config;
}

Tensor logits(const EncoderDecoder& model, const Pass& pass = Pass()) {
  const SmallBatch batch = small_batch();
  return model.forward(batch.source, batch.source_rows, batch.target, batch.target_rows, pass);
}

TEST(Frozen, ComputesWhatItComputed) {
  for (const TieEmbeddings tie : {TieEmbeddings::none, TieEmbeddings::two}) {
    EncoderDecoder model = make_model(wide_config(tie), DType::f32, 3);
    const Tensor before = logits(model);
    model.freeze();
    EXPECT_LT(difference(logits(model), before), 1e-5);
  }
}

TEST(Frozen, WidthsThatDoNotFitStayAsTheyAre) {
  EncoderDecoder model = make_model(small_config("rapt"), DType::f32, 3);
  const Tensor before = logits(model);
  model.freeze();
  for (const NamedParameter& p : nn::parameters(model)) {
    if (p.name.find("self_attention.query") == std::string::npos) continue;
    EXPECT_EQ(p.parameter.panels(), nullptr);
  }
  EXPECT_LT(difference(logits(model), before), 1e-5);
}

TEST(Frozen, MatesAndCachesChangeNothing) {
  EncoderDecoder model = make_model(wide_config(TieEmbeddings::none), DType::f32, 5);
  model.freeze();
  const SmallBatch batch = small_batch();
  const Tensor together = logits(model);
  for (int64_t b = 0; b < 3; ++b) {
    const kernels::Segment &s = batch.source_rows[b], &t = batch.target_rows[b];
    const Rows rows = Rows::packed({s.count});
    const Tensor source = batch.source.rows(s.row, s.count),
                 target = batch.target.rows(t.row, t.count);
    const nn::Memory memory = model.encode(source, rows, Pass());
    auto state = model.start(memory, Pass());
    for (int64_t i = 0; i < t.count; ++i) {
      const Rows step({kernels::Segment{0, 1, i, 0}});
      EXPECT_TRUE(same_bits(model.step(target.rows(i, 1), step, memory, state, Pass()),
                            together.rows(t.row + i, 1)))
          << b << " " << i;
    }
  }
}

TEST(Frozen, IsForInferenceAlone) {
  EncoderDecoder model = make_model(wide_config(TieEmbeddings::none), DType::f32, 5);
  model.freeze();
  if (nn::parameters(model).back().parameter.has_value() &&
      !PanelMatrix::of(Tensor::zeros({32, 32}, DType::f32)))
    GTEST_SKIP() << "this instruction set has no tiles";
  Gradients gradients;
  const std::string error = error_of([&] { logits(model, Pass::train(gradients, 1, 1)); });
  EXPECT_NE(error.find("frozen"), std::string::npos) << error;
}

}  // namespace
}  // namespace rapt::models
