#include "rapt/ops/expand.h"

#include "tests/testing/gradients.h"
#include "tests/testing/tensors.h"

namespace rapt {
namespace {

using testing::check_gradients;
using testing::error_of;
using testing::random_tensor;
using testing::values_of;

TEST(Expand, RepeatsAxesOfSizeOneAndThoseThatAreMissing) {
  const Tensor x = Tensor::from(std::vector<double>{1, 2}, {2, 1});
  EXPECT_EQ(values_of(expand(x, {2, 3})), (std::vector<double>{1, 1, 1, 2, 2, 2}));
  EXPECT_EQ(values_of(expand(x, {2, 2, 1})), (std::vector<double>{1, 2, 1, 2}));
  EXPECT_EQ(values_of(expand(x.reshape({2}), {2, 2})), (std::vector<double>{1, 2, 1, 2}));
  EXPECT_EQ(values_of(expand(Tensor::full({}, DType::f32, 3), {2})), (std::vector<double>{3, 3}));
  EXPECT_EQ(expand(x, {0, 2, 5}).shape(), Shape({0, 2, 5}));
  const Tensor flags = testing::bools({1, 0}, {1, 2});
  EXPECT_EQ(values_of(expand(flags, {2, 2})), (std::vector<double>{1, 0, 1, 0}));
}

TEST(Expand, ReadsAViewInPlace) {
  const Tensor x = random_tensor({3, 4}, 1);
  EXPECT_TRUE(testing::same_bits(expand(x.columns(1, 2), {3, 2}), x.columns(1, 2)));
}

TEST(Expand, GradientsSumOverWhatWasRepeated) {
  for (const Shape& shape : {Shape{2, 1}, Shape{1, 3}, Shape{3}, Shape{1}, Shape{2, 3}, Shape{}}) {
    EXPECT_TRUE(check_gradients(
        [](const auto& x) {
          return expand(x[0], {4, 2, 3});
        },
        {random_tensor(shape, 1)}));
  }
  EXPECT_TRUE(check_gradients(
      [](const auto& x) {
        return expand(x[0].columns(1, 2), {3, 2});
      },
      {random_tensor({3, 4}, 1)}));
}

TEST(Expand, WhatDoesNotFitIsAnError) {
  const auto message = [](const Shape& from, const Shape& to) {
    return error_of([&] { expand(random_tensor(from, 1), to); });
  };
  EXPECT_NE(message({2, 3}, {2, 4}).find("repeats to (2, 4), got (2, 3)"), std::string::npos);
  EXPECT_NE(message({2, 3}, {3}).find("(3)"), std::string::npos);
  EXPECT_NE(error_of([] { expand(Tensor(), {2}); }).find("none"), std::string::npos);
}

}  // namespace
}  // namespace rapt
