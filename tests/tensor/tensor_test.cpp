#include "rapt/tensor/tensor.h"

#include "tests/testing/tensors.h"

namespace rapt {
namespace {

using testing::error_of;
using testing::same_bits;

Tensor counting(const Shape& shape) {
  std::vector<double> values(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  return Tensor::from(values, shape);
}

TEST(Tensor, ColumnsAreAViewOfTheSameMemory) {
  Tensor x = counting({3, 4});
  Tensor view = x.columns(1, 2);
  EXPECT_EQ(view.shape(), Shape({3, 2}));
  EXPECT_EQ(view.row_stride(), 4);
  EXPECT_FALSE(view.contiguous());
  EXPECT_TRUE(view.shares_memory(x));
  EXPECT_EQ(view.to_vector<double>(), (std::vector<double>{1, 2, 5, 6, 9, 10}));
  view.data<double>()[4] = 50;
  EXPECT_EQ(x.to_vector<double>()[5], 50);
}

TEST(Tensor, RowsAreAViewOfTheSameMemory) {
  const Tensor x = counting({4, 3});
  EXPECT_EQ(x.rows(1, 2).to_vector<double>(), (std::vector<double>{3, 4, 5, 6, 7, 8}));
  EXPECT_TRUE(x.rows(1, 2).contiguous());
  EXPECT_EQ(x.rows(4, 0).numel(), 0);
  EXPECT_EQ(x.columns(1, 1).rows(1, 2).to_vector<double>(), (std::vector<double>{4, 7}));
}

TEST(Tensor, HeadsAreAReshapeOfColumns) {
  const Tensor x = counting({2, 12});
  const Tensor heads = x.columns(4, 4).reshape({2, 2, 2});
  EXPECT_EQ(heads.row_stride(), 12);
  EXPECT_EQ(heads.to_vector<double>(), (std::vector<double>{4, 5, 6, 7, 16, 17, 18, 19}));
  EXPECT_EQ(heads.reshape({2, 4}).to_vector<double>(), heads.to_vector<double>());
}

TEST(Tensor, ReshapeOfRowsWithGapsKeepsTheFirstAxis) {
  const Tensor view = counting({4, 6}).columns(0, 3);
  EXPECT_NE(error_of([&] { view.reshape({12}); }).find("first axis to stay 4"), std::string::npos);
  error_of([&] { view.reshape({2, 6}); });
  error_of([&] { counting({4, 6}).reshape({5, 5}); });
}

TEST(Tensor, OneRowWithGapsIsContiguous) {
  const Tensor view = counting({1, 6}).columns(2, 3);
  EXPECT_TRUE(view.contiguous());
  EXPECT_EQ(view.reshape({3}).to_vector<double>(), (std::vector<double>{2, 3, 4}));
}

TEST(Tensor, RangesOutsideAreErrorsThatNameThem) {
  const Tensor x = counting({3, 4});
  EXPECT_NE(error_of([&] { x.rows(2, 2); }).find("3 rows, got 2 from 2"), std::string::npos);
  EXPECT_NE(error_of([&] { x.columns(-1, 2); }).find("4 columns"), std::string::npos);
  error_of([&] { x.rows(1, -1); });
  error_of([&] { x.rows(INT64_MAX, 1); });
  error_of([&] { x.rows(1, INT64_MAX); });
  error_of([&] { x.columns(1, INT64_MAX); });
  error_of([&] { x.reshape({2, 6, 1}).columns(0, 1); });
  error_of([&] { Tensor::full({}, DType::f64, 1).rows(0, 1); });
}

TEST(Tensor, TheElementTypeIsChecked) {
  const Tensor x = counting({2});
  EXPECT_NE(error_of([&] { x.data<float>(); }).find("expected elements of f32, got f64"),
            std::string::npos);
  const Tensor none;
  EXPECT_FALSE(none.defined());
  EXPECT_NE(error_of([&] { none.data<float>(); }).find("got none"), std::string::npos);
}

TEST(Tensor, EmptyTensorsWork) {
  const Tensor x = Tensor::zeros({0, 5}, DType::f32);
  EXPECT_TRUE(x.defined());
  EXPECT_TRUE(x.contiguous());
  EXPECT_EQ(x.to_vector<float>().size(), 0u);
  EXPECT_EQ(x.columns(1, 2).contiguous_copy().shape(), Shape({0, 2}));
  EXPECT_EQ(x.reshape({0}).numel(), 0);
  EXPECT_EQ(Tensor::zeros({5, 0}, DType::f64).to_vector<double>().size(), 0u);
}

TEST(Tensor, FullAndFromHoldTheirValues) {
  EXPECT_EQ(Tensor::full({2}, DType::i64, -3).to_vector<int64_t>(), (std::vector<int64_t>{-3, -3}));
  EXPECT_EQ(Tensor::full({1}, DType::bf16, 1.5).item(), 1.5);
  EXPECT_EQ(Tensor::zeros({3}, DType::f32).to_vector<float>(), std::vector<float>(3, 0.f));
  EXPECT_NE(error_of([] {
              Tensor::from(std::vector<float>{1, 2}, {3});
            }).find("expected 3 values for (3), got 2"),
            std::string::npos);
  EXPECT_EQ(Tensor::full({}, DType::f64, 2.5).item(), 2.5);
  error_of([] { Tensor::zeros({2}, DType::f32).item(); });
}

TEST(Tensor, ConvertsBetweenTypes) {
  const Tensor x = Tensor::from(std::vector<float>{1.f, -2.5f, 1.00390625f}, {3});
  EXPECT_EQ(x.to(DType::f64).to_vector<double>(), (std::vector<double>{1, -2.5, 1.00390625}));
  // 1 + 2^-8 lies halfway between two bf16 numbers and goes to the even one.
  EXPECT_EQ(x.to(DType::bf16).to(DType::f32).to_vector<float>(),
            (std::vector<float>{1.f, -2.5f, 1.f}));
  EXPECT_EQ(x.to(DType::i32).to_vector<int32_t>(), (std::vector<int32_t>{1, -2, 1}));
  EXPECT_TRUE(x.to(DType::f32).shares_memory(x));
  EXPECT_EQ(counting({2, 4}).columns(1, 2).to(DType::f32).to_vector<float>(),
            (std::vector<float>{1, 2, 5, 6}));
}

TEST(Tensor, ACopySharesNothing) {
  Tensor x = counting({2, 2});
  const Tensor copy = x.contiguous_copy();
  x.data<double>()[0] = 9;
  EXPECT_EQ(copy.to_vector<double>(), (std::vector<double>{0, 1, 2, 3}));
  EXPECT_FALSE(copy.shares_memory(x));
}

TEST(Tensor, TheBlockKnowsHowManyHandlesHoldIt) {
  Tensor x = counting({2, 2});
  EXPECT_EQ(x.owners(), 1);
  const Tensor view = x.rows(0, 1);
  EXPECT_EQ(x.owners(), 2);
  x = Tensor();
  EXPECT_EQ(view.owners(), 1);
  EXPECT_EQ(view.to_vector<double>(), (std::vector<double>{0, 1}));
}

TEST(Tensor, RandomTensorsOfOneSeedAreTheSameBits) {
  EXPECT_TRUE(same_bits(testing::random_tensor({5}, 3), testing::random_tensor({5}, 3)));
  EXPECT_FALSE(same_bits(testing::random_tensor({5}, 3), testing::random_tensor({5}, 4)));
}

}  // namespace
}  // namespace rapt
