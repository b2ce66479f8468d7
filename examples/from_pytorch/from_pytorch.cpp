// A torch.nn.TransformerEncoder that PyTorch wrote (make.py), run and differentiated here.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "rapt/base/error.h"
#include "rapt/models/checkpoint.h"
#include "rapt/nn/torch/transformer.h"

namespace {

double largest_difference(const rapt::Tensor& a, const rapt::Tensor& b) {
  const auto x = a.to_vector<float>(), y = b.to_vector<float>();
  double most = x.size() == y.size() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i)
    most = std::max(most, std::abs(static_cast<double>(x[i]) - y[i]));
  return most;
}

// The largest difference from what PyTorch computed.
double run(const std::filesystem::path& folder) {
  // [c++]
  using namespace rapt;
  const nn::torch::TransformerLayerOptions layer{.d_model = 16,
                                                 .nhead = 4,
                                                 .dim_feedforward = 32,
                                                 .activation = "gelu",
                                                 .batch_first = true,
                                                 .norm_first = true};
  const nn::torch::TransformerEncoder encoder({layer, 2, true}, nn::Init{});
  models::load_state_dict(encoder, folder / "encoder.safetensors");

  const models::SafetensorsFile file(folder / "case.safetensors");
  Gradients gradients;
  const Tensor src = gradients.watch(file.load(file.at("src"), DType::f32));
  const Tensor padding = file.load(file.at("padding"), DType::boolean);
  nn::Attentions attentions;
  const Tensor output =
      encoder.forward(src, {.src_key_padding_mask = padding, .attentions = {.into = &attentions}},
                      Pass({.gradients = &gradients}));
  backward(output, Tensor::full(output.shape(), DType::f32, 1));
  // [c++]
  std::printf("output %s, attention of layer 0 %s\n", output.shape().text().c_str(),
              attentions.encoder[0].shape().text().c_str());
  double difference = largest_difference(output, file.load(file.at("output"), DType::f32));
  difference = std::max(
      difference, largest_difference(gradients.of(src), file.load(file.at("d_src"), DType::f32)));
  for (const NamedParameter& p : nn::parameters(encoder)) {
    if (const models::TensorInfo* info = file.find("grad." + p.name))
      difference = std::max(
          difference, largest_difference(gradients.of(p.parameter), file.load(*info, DType::f32)));
  }
  return difference;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "from_pytorch FOLDER (with encoder.safetensors and case.safetensors)\n");
    return 2;
  }
  try {
    const double difference = run(argv[1]);
    std::printf("largest difference from PyTorch: %.1e\n", difference);
    return difference < 2e-5 ? 0 : 1;
  } catch (const rapt::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
