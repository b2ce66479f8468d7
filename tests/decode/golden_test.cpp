// Greedy decoding against PyTorch's, of given weights and after training here and there.
#include "rapt/decode/greedy.h"
#include "tests/golden/training.h"

namespace rapt::decode {
namespace {

using testing::Golden;

class DecodeGolden : public ::testing::TestWithParam<std::string> {
 protected:
  std::filesystem::path folder(const std::string& suffix = "") const {
    return testing::golden_folder() / "encoder_decoder" / (GetParam() + suffix);
  }
};

INSTANTIATE_TEST_SUITE_P(Layouts, DecodeGolden, ::testing::Values("hand_built", "torch"),
                         [](const auto& of) { return of.param; });

// The row's numbers without those at its end that equal `padding`.
std::vector<int32_t> row_of(const Tensor& ids, int64_t row, int32_t padding) {
  std::vector<int32_t> all = ids.rows(row, 1).to_vector<int32_t>();
  while (!all.empty() && all.back() == padding) all.pop_back();
  return all;
}

void expect_decoded(const models::EncoderDecoder& model, const Golden& stored,
                    const std::string& prefix, double tolerance) {
  const Tensor source = stored.ids("src"), ids = stored.ids(prefix + "ids");
  std::vector<std::vector<int32_t>> sentences;
  for (int64_t b = 0; b < source.dim(0); ++b) sentences.push_back(row_of(source, b, 0));
  const std::vector<Decoded> decoded = greedy(model, sentences);
  const std::vector<double> scores = stored.floats(prefix + "score").to_vector<double>();
  ASSERT_EQ(decoded.size(), sentences.size());
  for (size_t b = 0; b < decoded.size(); ++b) {
    EXPECT_EQ(decoded[b].ids, row_of(ids, static_cast<int64_t>(b), -1)) << "sentence " << b;
    EXPECT_NEAR(decoded[b].score, scores[b], tolerance * std::abs(scores[b])) << "sentence " << b;
  }
}

TEST_P(DecodeGolden, GivesPyTorchsTargetsAndScores) {
  const Golden stored(folder("_decoding") / "decode.safetensors");
  for (const DType dtype : {DType::f64, DType::f32}) {
    const auto model = models::load_encoder_decoder(folder("_decoding"), dtype);
    expect_decoded(*model, stored, "", dtype == DType::f64 ? 1e-10 : 1e-5);
  }
}

TEST_P(DecodeGolden, TrainedLikePyTorchItDecodesLikePyTorch) {
  const auto model = models::load_encoder_decoder(folder(), DType::f64);
  const Golden stored(folder() / "train.safetensors");
  Gradients gradients;
  testing::expect_losses(
      testing::golden_losses(*model, testing::GoldenBatch::packed(stored), gradients),
      stored.floats("loss_f64"), 1e-9);
  expect_decoded(*model, Golden(folder("_decoding") / "decode.safetensors"), "trained.", 1e-9);
}

}  // namespace
}  // namespace rapt::decode
