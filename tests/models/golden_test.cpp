// Both spellings of the encoder-decoder against PyTorch: twenty steps of training, and one forward
// and backward pass with all attention weights.
#include "rapt/models/run.h"
#include "tests/golden/training.h"

namespace rapt {
namespace {

using testing::Golden;
using testing::GoldenBatch;

class ModelGolden : public ::testing::TestWithParam<std::string> {
 protected:
  std::filesystem::path folder(const std::string& suffix = "") const {
    return testing::golden_folder() / "encoder_decoder" / (GetParam() + suffix);
  }
  Golden stored() const { return Golden(folder() / "train.safetensors"); }
};

INSTANTIATE_TEST_SUITE_P(Layouts, ModelGolden, ::testing::Values("hand_built", "torch"),
                         [](const auto& of) { return of.param; });

// The gradients of one step; a tensor that is zero but for rounding is measured by its mates.
void expect_gradients(const std::vector<std::pair<std::string, Tensor>>& gradients,
                      const std::function<Tensor(const std::string&)>& stored) {
  double floor = 0;
  for (const auto& [name, gradient] : gradients)
    floor = std::max(floor, 1e-6 * testing::largest(stored("grad." + name)));
  for (const auto& [name, gradient] : gradients)
    testing::expect_agrees(gradient, stored("grad." + name), 1e-9, "grad." + name, floor);
}

void expect_training_agrees(const std::filesystem::path& folder, const Golden& of,
                            const GoldenBatch& batch) {
  const auto model = models::load_encoder_decoder(folder, DType::f64);
  Gradients gradients;
  const std::vector<double> losses =
      golden_losses(*model, batch, gradients, [&](int64_t step, int64_t count) {
        SCOPED_TRACE("step " + std::to_string(step));
        expect_gradients(testing::mean_gradients(*model, gradients, count),
                         [&](const std::string& name) { return of.floats(name).rows(step, 1); });
      });
  testing::expect_losses(losses, of.floats("loss_f64"), 1e-9);
}

TEST_P(ModelGolden, LossesAndGradientsOfTwentyPackedStepsAreThoseOfPyTorch) {
  expect_training_agrees(folder(), stored(), GoldenBatch::packed(stored()));
}

TEST_P(ModelGolden, LossesAndGradientsOfTwentyPaddedStepsAreThoseOfPyTorch) {
  expect_training_agrees(folder(), stored(), GoldenBatch::padded(stored()));
}

TEST_P(ModelGolden, StateDictInF32WithoutTheTableOfPositionsGivesTheSame) {
  expect_training_agrees(folder("_without_pe"), stored(), GoldenBatch::packed(stored()));
}

TEST_P(ModelGolden, LossesInF32StayNearThoseInF64) {
  for (const char* suffix : {"", "_without_pe"}) {
    const auto model = models::load_encoder_decoder(folder(suffix), DType::f32);
    Gradients gradients;
    testing::expect_losses(golden_losses(*model, GoldenBatch::packed(stored()), gradients),
                           stored().floats("loss_f64"), 1e-6);
  }
}

class ForwardGolden : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Models, ForwardGolden,
                         ::testing::Values("hand_built", "torch", "torch_norm_first"),
                         [](const auto& of) { return of.param; });

TEST_P(ForwardGolden, LogitsWeightsAndGradientsAreThoseOfPyTorch) {
  const std::filesystem::path folder = testing::golden_folder() / "forward" / GetParam();
  const Golden in(folder / "in.safetensors"), out(folder / "out.safetensors");
  for (const DType dtype : {DType::f64, DType::f32}) {
    SCOPED_TRACE(dtype_name(dtype));
    const auto model = models::load_encoder_decoder(folder, dtype);
    const models::NamedTensors outputs = models::run(*model,
                                                     {{"src", in.ids("src")},
                                                      {"tgt", in.ids("tgt")},
                                                      {"d_output", in.floats("d_output", dtype)}},
                                                     {.attentions = true, .gradients = true});
    EXPECT_EQ(outputs.size(), out.count());
    double floor = 0;
    for (const auto& [name, tensor] : outputs)
      floor = std::max(floor, 1e-3 * testing::largest(out.floats(name)));
    for (const auto& [name, tensor] : outputs) {
      ASSERT_EQ(tensor.shape(), out.floats(name).shape()) << name;
      testing::expect_agrees(tensor, out.floats(name), dtype == DType::f64 ? 1e-10 : 1e-5, name,
                             floor);
    }
  }
}

}  // namespace
}  // namespace rapt
