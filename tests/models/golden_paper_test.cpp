// The same at the paper's size (6 + 6 layers, d_model 512, d_ff 2048, 8 heads), against a folder
// that `encoder_decoder.py paper DIR` wrote: RAPT_GOLDEN_DIR.
#include <cstdlib>

#include "tests/golden/training.h"

namespace rapt {
namespace {

using testing::Golden;
using testing::GoldenBatch;

class PaperGolden : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const char* root = std::getenv("RAPT_GOLDEN_DIR");
    if (root == nullptr)
      GTEST_SKIP() << "no numbers of the paper's size: RAPT_GOLDEN_DIR is not set";
    folder_ = std::filesystem::path(root) / GetParam();
  }
  Golden stored() const { return Golden(folder_ / "train.safetensors"); }
  std::filesystem::path folder_;
};

INSTANTIATE_TEST_SUITE_P(Layouts, PaperGolden, ::testing::Values("hand_built", "torch"),
                         [](const auto& of) { return of.param; });

TEST_P(PaperGolden, LossesGradientsAndNormsAreThoseOfPyTorch) {
  const auto model = models::load_encoder_decoder(folder_, DType::f64);
  const Golden of = stored();
  Gradients gradients;
  const std::vector<double> losses = golden_losses(
      *model, GoldenBatch::packed(of), gradients,
      [&](int64_t step, int64_t count) {
        if (step > 0) return;
        const auto first = testing::mean_gradients(*model, gradients, count);
        double floor = 0;
        for (const auto& [name, gradient] : first)
          floor = std::max(floor, 1e-6 * testing::largest(gradient));
        for (const auto& [name, gradient] : first)
          testing::expect_agrees(gradient, of.floats("grad." + name), 1e-9, "grad." + name, floor);
      },
      of.number("rate"));
  testing::expect_losses(losses, of.floats("loss_f64"), 1e-9);
  const auto values = models::by_file_name(*model, models::layout(GetParam()),
                                           [](const NamedParameter& p) { return p.value(); });
  for (const auto& [name, value] : values) {
    double squares = 0;
    for (const double x : value.to_vector<double>()) squares += x * x;
    const double wanted = of.number("norm." + name);
    EXPECT_NEAR(std::sqrt(squares), wanted, 1e-9 * wanted) << "norm." << name;
  }
}

TEST_P(PaperGolden, LossesInF32StayNearThoseInF64) {
  const auto model = models::load_encoder_decoder(folder_, DType::f32);
  const Golden of = stored();
  Gradients gradients;
  testing::expect_losses(
      golden_losses(*model, GoldenBatch::packed(of), gradients, {}, of.number("rate")),
      of.floats("loss_f64"), 1e-4);
}

}  // namespace
}  // namespace rapt
