#include "rapt/ops/softmax.h"

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

TEST(Softmax, Gradients) {
  const auto f = [](const Inputs& x) { return softmax(x[0]); };
  for (const Shape& shape : std::vector<Shape>{
           {3, 5}, {0, 4}, {3, 0}, {1, 1}, {7}, {2, 3, 4}, {5, 1}, {2, 67}, {1, 2, 3}}) {
    const Inputs inputs = {random_tensor(shape, 1, DType::f64, -3, 3)};
    EXPECT_TRUE(check_gradients(f, inputs)) << shape.text();
    EXPECT_TRUE(check_f32(f, inputs)) << shape.text();
  }
  EXPECT_TRUE(check_gradients([](const Inputs& x) { return softmax(x[0].columns(1, 3)); },
                              {random_tensor({4, 6}, 1)}));
  EXPECT_TRUE(check_gradients(  // one row with a gap behind it, three axes
      [](const Inputs& x) {
        return softmax(x[0].columns(1, 4).reshape({1, 2, 2}));
      },
      {random_tensor({1, 6}, 1)}));
  EXPECT_TRUE(check_gradients([](const Inputs& x) { return softmax(add(x[0], scale(x[0], 2))); },
                              {random_tensor({2, 3}, 1)}));
}

TEST(Softmax, ValuesFollowTheFormula) {
  const Tensor x = random_tensor({4, 6}, 1, DType::f64, -5, 5);
  const auto xs = values_of(x), y = values_of(softmax(x)), log_y = values_of(log_softmax(x)),
             sums = values_of(log_sum_exp(x));
  for (size_t i = 0; i < 4; ++i) {
    double sum = 0;
    for (size_t j = 0; j < 6; ++j) sum += std::exp(xs[i * 6 + j]);
    EXPECT_NEAR(sums[i], std::log(sum), 1e-14);
    for (size_t j = 0; j < 6; ++j) {
      EXPECT_NEAR(y[i * 6 + j], std::exp(xs[i * 6 + j]) / sum, 1e-15);
      EXPECT_NEAR(log_y[i * 6 + j], xs[i * 6 + j] - std::log(sum), 1e-14);
    }
  }
}

TEST(Softmax, LargeNumbersDoNotOverflow) {
  const Tensor x = Tensor::from(std::vector<float>{1e30f, 1e30f, -1e30f}, {1, 3});
  EXPECT_EQ(softmax(x).to_vector<float>(), (std::vector<float>{0.5f, 0.5f, 0.f}));
}

TEST(Softmax, HiddenElementsGetNothingAndARowOfThemZeros) {
  for (const DType dtype : {DType::f64, DType::f32}) {
    const Tensor x =
        Tensor::from(std::vector<double>{1, -INFINITY, 1, -INFINITY, -INFINITY, -INFINITY}, {2, 3})
            .to(dtype);
    EXPECT_EQ(values_of(softmax(x)), (std::vector<double>{0.5, 0, 0.5, 0, 0, 0}));
    Gradients gradients;
    const Tensor leaf = gradients.watch(x);
    backward(softmax(leaf), Tensor::full({2, 3}, dtype, 1).to(dtype));
    for (const double g : values_of(gradients.of(leaf))) EXPECT_NEAR(g, 0, 1e-7);
  }
}

TEST(Softmax, WrongInputsAreErrors) {
  EXPECT_NE(error_of([] { softmax(Tensor::full({}, DType::f64, 1)); }).find("got a scalar"),
            std::string::npos);
  error_of([] { softmax(random_tensor({2, 6}, 1).columns(0, 4).reshape({2, 2, 2})); });
  error_of([] { softmax(testing::ids({1})); });
}

}  // namespace
}  // namespace rapt
