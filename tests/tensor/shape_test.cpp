#include "rapt/tensor/shape.h"

#include <limits>

#include "tests/testing/testing.h"

namespace rapt {
namespace {

using testing::error_of;

TEST(Shape, CountsElementsAndRows) {
  EXPECT_EQ(Shape({2, 3, 4}).numel(), 24);
  EXPECT_EQ(Shape({2, 3, 4}).row_size(), 12);
  EXPECT_EQ(Shape().numel(), 1);
  EXPECT_EQ(Shape().row_size(), 1);
  EXPECT_EQ(Shape().rank(), 0);
  EXPECT_EQ(Shape({5}).row_size(), 1);
}

TEST(Shape, WithAZeroHasNoElementsButKeepsItsRowSize) {
  EXPECT_EQ(Shape({0, 7}).numel(), 0);
  EXPECT_EQ(Shape({0, 7}).row_size(), 7);
  EXPECT_EQ(Shape({7, 0}).row_size(), 0);
}

TEST(Shape, NegativeAxesCountFromTheLast) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape[-1], 4);
  EXPECT_EQ(shape[-3], 2);
  EXPECT_EQ(shape[0], 2);
  EXPECT_NE(error_of([&] { shape[3]; }).find("(2, 3, 4)"), std::string::npos);
  EXPECT_NE(error_of([&] { shape[-4]; }).find("-4"), std::string::npos);
}

TEST(Shape, EqualityLooksAtAllAxes) {
  EXPECT_EQ(Shape({2, 3}), Shape({2, 3}));
  EXPECT_NE(Shape({2, 3}), Shape({3, 2}));
  EXPECT_NE(Shape({2, 3}), Shape({2, 3, 1}));
  EXPECT_EQ(Shape({2, 3}).text(), "(2, 3)");
}

TEST(Shape, RefusesWhatCannotBe) {
  constexpr int64_t huge = std::numeric_limits<int64_t>::max();
  EXPECT_NE(error_of([] { Shape({2, -1}); }).find("-1 on axis 1"), std::string::npos);
  EXPECT_NE(error_of([] { Shape({1, 1, 1, 1, 1, 1, 1}); }).find("at most 6"), std::string::npos);
  error_of([] { Shape({huge, 2}); });
  error_of([] { Shape({huge}); });
  // A zero does not hide axes whose product is too large for a row size.
  error_of([] { Shape({0, huge, huge}); });
}

TEST(DType, KnowsItsSizeAndName) {
  EXPECT_EQ(size_of(DType::f32), 4);
  EXPECT_EQ(size_of(DType::f64), 8);
  EXPECT_EQ(size_of(DType::bf16), 2);
  EXPECT_EQ(size_of(DType::i32), 4);
  EXPECT_EQ(size_of(DType::i64), 8);
  EXPECT_EQ(size_of(DType::boolean), 1);
  EXPECT_EQ(dtype_name(DType::bf16), "bf16");
  EXPECT_EQ(dtype_name(DType::boolean), "bool");
  EXPECT_TRUE(is_float(DType::bf16));
  EXPECT_FALSE(is_float(DType::i64));
}

}  // namespace
}  // namespace rapt
