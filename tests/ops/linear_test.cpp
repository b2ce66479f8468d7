#include "rapt/ops/linear.h"

#include "rapt/ops/elementwise.h"
#include "tests/testing/gradients.h"
#include "tests/testing/tensors.h"

namespace rapt {
namespace {

using testing::check_f32;
using testing::check_gradients;
using testing::error_of;
using testing::random_tensor;
using testing::values_of;
using Inputs = std::vector<Tensor>;

struct Size {
  int64_t M, N, K;
};
const std::vector<Size> kSizes = {{3, 5, 7}, {1, 1, 1},   {0, 4, 3}, {3, 0, 2},
                                  {3, 2, 0}, {17, 9, 33}, {40, 3, 5}};

TEST(Linear, GradientsOfAllInputs) {
  for (const auto [M, N, K] : kSizes) {
    const Inputs inputs = {random_tensor({M, K}, 1), random_tensor({N, K}, 2),
                           random_tensor({N}, 3)};
    const auto with_bias = [](const Inputs& x) { return linear(x[0], x[1], x[2]); };
    EXPECT_TRUE(check_gradients(with_bias, inputs)) << M << " " << N << " " << K;
    EXPECT_TRUE(check_f32(with_bias, inputs)) << M << " " << N << " " << K;
    const auto without = [](const Inputs& x) { return linear(x[0], x[1]); };
    EXPECT_TRUE(check_gradients(without, {inputs[0], inputs[1]})) << M << " " << N << " " << K;
  }
}

TEST(Linear, GradientsOfViews) {
  // Input and weight are columns of wider matrices; the weight and bias are rows of stacked ones.
  const auto f = [](const Inputs& x) {
    const Tensor y = linear(x[0].columns(1, 3), x[1].rows(2, 4), x[2].rows(2, 4));
    const Tensor z = linear(x[0].columns(3, 2), x[1].rows(0, 4).columns(1, 2), x[2].rows(0, 4));
    return add(y, z);
  };
  EXPECT_TRUE(check_gradients(
      f, {random_tensor({5, 6}, 1), random_tensor({7, 3}, 2), random_tensor({7}, 3)}));
}

TEST(Linear, GradientsWhereOneTensorIsInputAndWeight) {
  EXPECT_TRUE(check_gradients([](const Inputs& x) { return linear(x[0], x[0]); },
                              {random_tensor({4, 3}, 1)}));
}

TEST(Linear, ValuesFollowTheFormula) {
  const Tensor x = random_tensor({5, 7}, 1), w = random_tensor({3, 7}, 2),
               b = random_tensor({3}, 3);
  const auto y = values_of(linear(x, w, b)), xs = values_of(x), ws = values_of(w),
             bs = values_of(b);
  for (size_t i = 0; i < 5; ++i) {
    for (size_t o = 0; o < 3; ++o) {
      double sum = bs[o];
      for (size_t k = 0; k < 7; ++k) sum += xs[i * 7 + k] * ws[o * 7 + k];
      EXPECT_NEAR(y[i * 3 + o], sum, 1e-14);
    }
  }
}

TEST(Linear, WithoutInputChannelsIsTheBias) {
  const Tensor b = random_tensor({3}, 3);
  const Tensor y = linear(Tensor::zeros({2, 0}, DType::f64), Tensor::zeros({3, 0}, DType::f64), b);
  const auto bs = values_of(b);
  EXPECT_EQ(values_of(y), (std::vector<double>{bs[0], bs[1], bs[2], bs[0], bs[1], bs[2]}));
}

TEST(Linear, WrongInputsAreErrors) {
  const Tensor x = random_tensor({2, 3}, 1), w = random_tensor({4, 3}, 2);
  EXPECT_NE(error_of([&] {
              linear(x, random_tensor({4, 5}, 2));
            }).find("expected 5 input channels, got 3"),
            std::string::npos);
  EXPECT_NE(error_of([&] { linear(x, w, random_tensor({3}, 2)); }).find("bias of 4, got (3)"),
            std::string::npos);
  EXPECT_NE(error_of([&] { linear(x, w.to(DType::f32)); }).find("one type"), std::string::npos);
  error_of([&] { linear(x.reshape({6}), w); });
  error_of([&] { linear(x.reshape({2, 3, 1}), w); });
}

}  // namespace
}  // namespace rapt
