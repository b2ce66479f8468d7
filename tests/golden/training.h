// Training an encoder-decoder as encoder_decoder.py does it, and comparing every step.
#pragma once

#include <fmt/format.h>

#include "rapt/models/checkpoint.h"
#include "rapt/ops/cross_entropy.h"
#include "rapt/optim/optimizer.h"
#include "tests/golden/golden.h"

namespace rapt::testing {

inline constexpr int64_t kGoldenSteps = 20;

// What train.safetensors trains on: source, target and labels as ids, and their sentences.
struct GoldenBatch {
  Tensor source, target, labels;
  Rows source_rows, target_rows;
  Mask source_mask, target_mask;

  // The matrices as they stand: equal lengths, padding hidden by masks.
  static GoldenBatch padded(const Golden& of) {
    const auto keep = [](const Tensor& ids) {
      std::vector<uint8_t> real;
      for (const int32_t id : ids.to_vector<int32_t>()) real.push_back(id != 0);
      return Mask::keep(Tensor::from(real, {ids.numel()}));
    };
    const Tensor source = of.ids("src"), target = of.ids("tgt");
    return {flat(source), flat(target), flat(of.ids("labels")), rows_of(source), rows_of(target),
            keep(source), keep(target)};
  }

  // Only the tokens that are none.
  static GoldenBatch packed(const Golden& of) {
    const auto [source, source_rows] = tokens(of.ids("src"));
    const auto [target, target_rows] = tokens(of.ids("tgt"));
    return {source, target, tokens(of.ids("labels")).first, source_rows, target_rows, {}, {}};
  }

 private:
  static Tensor flat(const Tensor& ids) { return ids.reshape({ids.numel()}); }
  static Rows rows_of(const Tensor& ids) { return Rows::equal(ids.dim(0), ids.dim(1)); }
  static std::pair<Tensor, Rows> tokens(const Tensor& ids) {
    std::vector<int32_t> real;
    std::vector<int64_t> lengths;
    for (int64_t row = 0; row < ids.dim(0); ++row) {
      const std::vector<int32_t> sentence = ids.rows(row, 1).to_vector<int32_t>();
      const auto end = std::find(sentence.begin(), sentence.end(), 0);
      real.insert(real.end(), sentence.begin(), end);
      lengths.push_back(end - sentence.begin());
    }
    return {Tensor::from(real, {static_cast<int64_t>(real.size())}), Rows::packed(lengths)};
  }
};

// Forward, loss and backward of one step; gradients of the loss's sum are left in `gradients`.
inline Loss golden_step(const models::EncoderDecoder& model, const GoldenBatch& batch,
                        Gradients& gradients, uint64_t step) {
  gradients.clear();
  Tensor logits =
      model.forward(batch.source, batch.source_rows, batch.target, batch.target_rows,
                    Pass::train(gradients, 0, step), batch.source_mask, batch.target_mask);
  const Loss loss = cross_entropy(std::move(logits), batch.labels, {.ignore_index = 0});
  backward(loss.sum);
  return loss;
}

// Twenty steps of SGD with momentum at `rate`. `after_backward(step, count)` runs before each
// update.
inline std::vector<double> golden_losses(
    models::EncoderDecoder& model, const GoldenBatch& batch, Gradients& gradients,
    const std::function<void(int64_t step, int64_t count)>& after_backward = {},
    double rate = 1e-3) {
  const auto optimizer = optim::make_sgd(nn::parameters(model), {.momentum = 0.99});
  std::vector<double> losses;
  for (int64_t step = 0; step < kGoldenSteps; ++step) {
    const Loss loss = golden_step(model, batch, gradients, static_cast<uint64_t>(step));
    losses.push_back(loss.mean());
    if (after_backward) after_backward(step, loss.count);
    optimizer->step(gradients, 1.0 / static_cast<double>(loss.count), rate);
  }
  return losses;
}

// Each loss within `tolerance` of the stored one, relatively; the largest difference goes to the
// test's report.
inline void expect_losses(const std::vector<double>& got, const Tensor& wanted, double tolerance) {
  const std::vector<double> losses = wanted.to(DType::f64).to_vector<double>();
  ASSERT_EQ(got.size(), losses.size());
  double largest = 0;
  for (size_t step = 0; step < got.size(); ++step) {
    EXPECT_NEAR(got[step], losses[step], tolerance * losses[step]) << "loss of step " << step;
    largest = std::max(largest, std::abs(got[step] / losses[step] - 1));
  }
  ::testing::Test::RecordProperty("largest_relative_difference", fmt::format("{:.1e}", largest));
}

// The gradients of the mean loss under the names of the model's layout.
inline std::vector<std::pair<std::string, Tensor>> mean_gradients(
    const models::EncoderDecoder& model, Gradients& gradients, int64_t count) {
  const models::Layout& layout = models::layout(model.config().layout);
  return models::by_file_name(model, layout, [&](const NamedParameter& p) {
    std::vector<double> values =
        gradients.of(p.parameter).rows(p.begin, p.count).to(DType::f64).to_vector<double>();
    for (double& value : values) value /= static_cast<double>(count);
    return Tensor::from(values, p.value().shape());
  });
}

}  // namespace rapt::testing
