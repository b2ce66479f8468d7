// Moved elements and their gradients.
#include "rapt/ops/arrange.h"

#include "tests/testing/gradients.h"
#include "tests/testing/tensors.h"

namespace rapt {
namespace {

using testing::bools;
using testing::check_f32;
using testing::check_gradients;
using testing::error_of;
using testing::random_tensor;
using testing::values_of;
using Inputs = std::vector<Tensor>;

TEST(Arrange, SwapAxesMovesWholeRows) {
  const Tensor x = Tensor::from<double>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {2, 3, 2});
  const Tensor y = swap_axes(x);
  EXPECT_EQ(y.shape(), (Shape{3, 2, 2}));
  EXPECT_EQ(values_of(y), (std::vector<double>{1, 2, 7, 8, 3, 4, 9, 10, 5, 6, 11, 12}));
}

TEST(Arrange, SwapAxesHasItsGradient) {
  for (const Shape& shape : {Shape{2, 3, 4}, Shape{1, 5, 2}, Shape{3, 1, 1}, Shape{0, 2, 3}}) {
    const auto f = [](const Inputs& x) { return swap_axes(x[0]); };
    EXPECT_TRUE(check_gradients(f, {random_tensor(shape, 1)}));
    EXPECT_TRUE(check_f32(f, {random_tensor(shape, 1)}));
  }
}

TEST(Arrange, AppendRowEndsEverySentence) {
  const Rows rows = Rows::packed({2, 0, 1});
  const Tensor x = Tensor::from<double>({1, 2, 3, 4, 5, 6}, {3, 2});
  const Tensor row = Tensor::from<double>({8, 9}, {1, 1, 2});
  EXPECT_EQ(values_of(append_row(x, rows, row)),
            (std::vector<double>{1, 2, 3, 4, 8, 9, 8, 9, 5, 6, 8, 9}));
  EXPECT_EQ(values_of(append_row(x, rows, {})),
            (std::vector<double>{1, 2, 3, 4, 0, 0, 0, 0, 5, 6, 0, 0}));
}

TEST(Arrange, AppendRowHasItsGradients) {
  for (const Rows& rows : {Rows::packed({2, 0, 3}), Rows::packed({5}), Rows::equal(5, 1), Rows()}) {
    const Tensor x = random_tensor({rows.tokens(), 2, 3}, 1), row = random_tensor({1, 1, 6}, 2);
    EXPECT_TRUE(check_gradients([&](const Inputs& in) { return append_row(in[0], rows, in[1]); },
                                {x, row}));
    EXPECT_TRUE(
        check_gradients([&](const Inputs& in) { return append_row(in[0], rows, {}); }, {x}));
  }
}

TEST(Arrange, AppendColumnAddsZerosOfAnyType) {
  EXPECT_EQ(values_of(append_column(Tensor::from<double>({1, 2, 3, 4}, {2, 2}))),
            (std::vector<double>{1, 2, 0, 3, 4, 0}));
  EXPECT_EQ(append_column(bools({1, 1}, {2})).to_vector<uint8_t>(),
            (std::vector<uint8_t>{1, 1, 0}));
  EXPECT_EQ(values_of(append_column(Tensor::zeros({2, 0}, DType::f64))),
            (std::vector<double>{0, 0}));
  for (const Shape& shape : {Shape{3}, Shape{2, 3}, Shape{2, 2, 2}, Shape{2, 0}}) {
    EXPECT_TRUE(check_gradients([](const Inputs& x) { return append_column(x[0]); },
                                {random_tensor(shape, 1)}));
  }
}

TEST(Arrange, SaysWhatDoesNotFit) {
  EXPECT_EQ(error_of([] {
              swap_axes(Tensor::zeros({2, 3}, DType::f32));
            }),
            "swap_axes: expected (A, B, C), got (2, 3)");
  EXPECT_EQ(error_of([] {
              append_row(Tensor::zeros({3, 2}, DType::f32), Rows::packed({3}),
                         Tensor::zeros({3}, DType::f32));
            }),
            "append_row: expected a row of 2 elements of f32, got (3)");
  EXPECT_EQ(error_of([] {
              append_row(Tensor::zeros({3, 2}, DType::f32), Rows::packed({2}), {});
            }),
            "append_row: expected 2 rows without gaps, got (3, 2)");
}

}  // namespace
}  // namespace rapt
