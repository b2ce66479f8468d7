#include "rapt/ops/layer_norm.h"

#include "rapt/ops/elementwise.h"
#include "tests/testing/gradients.h"
#include "tests/testing/tensors.h"

namespace rapt {
namespace {

using testing::check_f32;
using testing::check_gradients;
using testing::difference;
using testing::error_of;
using testing::random_tensor;
using testing::values_of;
using Inputs = std::vector<Tensor>;

const kernels::Dropout kSite{0.3, {5, 6}};
const std::vector<Shape> kShapes = {{3, 5}, {0, 4}, {1, 2}, {4, 1}, {2, 37}, {70, 3}, {3, 0}};

TEST(LayerNorm, Gradients) {
  for (const Shape& shape : kShapes) {
    const int64_t C = shape[1];
    const Inputs inputs = {random_tensor(shape, 1), random_tensor({C}, 2, DType::f64, 0.5, 1.5),
                           random_tensor({C}, 3)};
    const auto both = [](const Inputs& x) { return layer_norm(x[0], x[1], x[2], 1e-2); };
    EXPECT_TRUE(check_gradients(both, inputs)) << shape.text();
    if (C > 1) {
      EXPECT_TRUE(check_f32(both, inputs)) << shape.text();
    }
    const auto gain_only = [](const Inputs& x) { return layer_norm(x[0], x[1], {}, 1e-2); };
    EXPECT_TRUE(check_gradients(gain_only, {inputs[0], inputs[1]})) << shape.text();
  }
}

TEST(LayerNorm, GradientsOfViews) {
  const auto f = [](const Inputs& x) {
    return layer_norm(x[0].columns(1, 4), x[1].rows(0, 4), x[1].rows(3, 4), 1e-2);
  };
  EXPECT_TRUE(check_gradients(f, {random_tensor({5, 6}, 1), random_tensor({8}, 2)}));
  const auto fused = [](const Inputs& x) {  // x and residual overlap
    return residual_layer_norm(x[0].columns(1, 4), x[0].columns(2, 4), Rows::packed({2, 3}), kSite,
                               x[1], x[2], 1e-2);
  };
  EXPECT_TRUE(check_gradients(
      fused, {random_tensor({5, 6}, 1), random_tensor({4}, 2), random_tensor({4}, 3)}));
}

TEST(LayerNorm, GradientsWithResidualAndDropout) {
  for (const Shape& shape : kShapes) {
    const int64_t N = shape[0], C = shape[1];
    const Inputs inputs = {random_tensor(shape, 1), random_tensor(shape, 2), random_tensor({C}, 3),
                           random_tensor({C}, 4)};
    for (const kernels::Dropout& site : {kernels::Dropout{}, kSite}) {
      const auto f = [&](const Inputs& x) {
        return residual_layer_norm(x[0], x[1], Rows::packed({N / 2, N - N / 2}), site, x[2], x[3],
                                   1e-2);
      };
      EXPECT_TRUE(check_gradients(f, inputs)) << shape.text();
      if (C > 1) {
        EXPECT_TRUE(check_f32(f, inputs)) << shape.text();
      }
    }
  }
}

TEST(LayerNorm, TheFusedFormEqualsItsParts) {
  const Rows rows = Rows::packed({3, 4});
  const Tensor x = random_tensor({7, 33}, 1), residual = random_tensor({7, 33}, 2);
  const Tensor gain = random_tensor({33}, 3), shift = random_tensor({33}, 4);
  for (const DType dtype : {DType::f64, DType::f32}) {
    const Tensor fused = residual_layer_norm(x.to(dtype), residual.to(dtype), rows, kSite,
                                             gain.to(dtype), shift.to(dtype), 1e-5);
    const Tensor parts = layer_norm(dropout_add(x.to(dtype), residual.to(dtype), rows, kSite),
                                    gain.to(dtype), shift.to(dtype), 1e-5);
    EXPECT_LE(difference(fused, parts), testing::equal_within(dtype));
  }
}

TEST(LayerNorm, ValuesFollowTheFormula) {
  const Tensor x = random_tensor({4, 9}, 1, DType::f64, 2, 5), gain = random_tensor({9}, 2),
               shift = random_tensor({9}, 3);
  const auto y = values_of(layer_norm(x, gain, shift, 1e-5)), xs = values_of(x);
  const auto g = values_of(gain), b = values_of(shift);
  for (size_t i = 0; i < 4; ++i) {
    double mean = 0, variance = 0;
    for (size_t j = 0; j < 9; ++j) mean += xs[i * 9 + j] / 9;
    for (size_t j = 0; j < 9; ++j) variance += std::pow(xs[i * 9 + j] - mean, 2) / 9;
    for (size_t j = 0; j < 9; ++j) {
      const double z = (xs[i * 9 + j] - mean) / std::sqrt(variance + 1e-5);
      EXPECT_NEAR(y[i * 9 + j], z * g[j] + b[j], 1e-12);
    }
  }
}

TEST(LayerNorm, AConstantRowGivesTheShift) {
  const Tensor shift = random_tensor({6}, 3, DType::f32);
  const Tensor y = layer_norm(Tensor::full({2, 6}, DType::f32, 1000.1),
                              Tensor::full({6}, DType::f32, 1), shift, 1e-5);
  EXPECT_LE(difference(y.rows(1, 1).reshape({6}), shift), 1e-5);
}

TEST(LayerNorm, WrongInputsAreErrors) {
  const Tensor x = random_tensor({2, 3}, 1), one = random_tensor({3}, 2);
  EXPECT_NE(error_of([&] {
              layer_norm(x, random_tensor({4}, 2), {}, 1e-5);
            }).find("layer_norm: expected a gain of 3, got (4)"),
            std::string::npos);
  error_of([&] { layer_norm(x, one, random_tensor({4}, 2), 1e-5); });
  error_of([&] { layer_norm(x.reshape({6}), one, {}, 1e-5); });
  error_of([&] { layer_norm(x, one.to(DType::f32), {}, 1e-5); });
  error_of([&] { residual_layer_norm(x, random_tensor({3, 3}, 1), Rows(), {}, one, {}, 1e-5); });
  error_of([&] { residual_layer_norm(x, Tensor(), Rows(), {}, one, {}, 1e-5); });
  EXPECT_NE(error_of([&] {
              residual_layer_norm(x, x, Rows(), kSite, one, {}, 1e-5);
            }).find("expected 0 rows, got 2"),
            std::string::npos);
}

}  // namespace
}  // namespace rapt
