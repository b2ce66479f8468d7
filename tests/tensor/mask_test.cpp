#include "rapt/tensor/mask.h"

#include "tests/testing/tensors.h"

namespace rapt {
namespace {

using testing::bools;
using testing::error_of;

// What a mask lets query i of head h in sentence b see of key j.
bool sees(const Mask& mask, const Rows& q, const Rows& k, int64_t H, int64_t b, int64_t h,
          int64_t i, int64_t j) {
  const Mask::View view = mask.view("test", q, k, H);
  const kernels::AttentionMask kernel = view.mask(mask);
  const int64_t query = q[b].position + i, key = k[b].position + j;
  if (kernel.causal && key > query) return false;
  if (kernel.window >= 0 && std::abs(query - key) > kernel.window) return false;
  for (const kernels::KeepMatrix& m : kernel.matrices) {
    const int64_t start = m.offset_by_key_row ? k[b].row : b * m.stride_b;
    if (m.keep[start + h * m.stride_h + i * m.stride_q + j] == 0) return false;
  }
  return true;
}

TEST(Mask, SeesEverythingByDefault) {
  const Rows rows = Rows::packed({2, 3});
  EXPECT_TRUE(sees(Mask(), rows, rows, 1, 1, 0, 0, 2));
}

TEST(Mask, CausalGoesByPosition) {
  const Rows queries({{.row = 0, .count = 1, .position = 2, .sample = 0}});
  const Rows keys = Rows::packed({4});
  EXPECT_TRUE(sees(Mask::causal(), queries, keys, 1, 0, 0, 0, 2));
  EXPECT_FALSE(sees(Mask::causal(), queries, keys, 1, 0, 0, 0, 3));
  EXPECT_FALSE(sees(Mask() & Mask::causal(), queries, keys, 1, 0, 0, 0, 3));
}

TEST(Mask, TheNarrowerOfTwoWindowsHolds) {
  const Rows rows = Rows::packed({6});
  for (const Mask& mask : {Mask::window(3) & Mask::window(1), Mask::window(1) & Mask::window(3),
                           Mask::window(1) & Mask()}) {
    EXPECT_TRUE(sees(mask, rows, rows, 1, 0, 0, 2, 3));
    EXPECT_FALSE(sees(mask, rows, rows, 1, 0, 0, 2, 4));
  }
  error_of([] { Mask::window(-1); });
}

TEST(Mask, R04_KeepAndDropAreExactComplements) {
  const Rows rows = Rows::equal(2, 3);
  const std::vector<Shape> shapes = {{6}, {3, 3}, {2, 3, 3}, {2, 2, 3, 3}};
  for (const Shape& shape : shapes) {
    std::vector<int> allowed(static_cast<size_t>(shape.numel()));
    for (size_t i = 0; i < allowed.size(); ++i) allowed[i] = i * i % 3 == 1;
    std::vector<int> hidden = allowed;
    for (int& value : hidden) value = value == 0;
    const Mask keep = Mask::keep(bools(allowed, shape)), drop = Mask::drop(bools(allowed, shape));
    const Mask drop_hidden = Mask::drop(bools(hidden, shape));
    for (int64_t b = 0; b < 2; ++b) {
      for (int64_t h = 0; h < 2; ++h) {
        for (int64_t i = 0; i < 3; ++i) {
          for (int64_t j = 0; j < 3; ++j) {
            const bool kept = sees(keep, rows, rows, 2, b, h, i, j);
            EXPECT_NE(kept, sees(drop, rows, rows, 2, b, h, i, j)) << shape.text();
            EXPECT_EQ(kept, sees(drop_hidden, rows, rows, 2, b, h, i, j)) << shape.text();
          }
        }
      }
    }
  }
}

TEST(Mask, EachRankAddressesItsOwnElement) {
  const Rows rows = Rows::equal(2, 2);
  const auto one_at = [](const Shape& shape, size_t index) {
    std::vector<int> values(static_cast<size_t>(shape.numel()), 1);
    values[index] = 0;
    return Mask::keep(bools(values, shape));
  };
  EXPECT_FALSE(sees(one_at({4}, 3), rows, rows, 2, 1, 1, 0, 1));
  EXPECT_TRUE(sees(one_at({4}, 3), rows, rows, 2, 0, 1, 0, 1));
  EXPECT_FALSE(sees(one_at({2, 2}, 2), rows, rows, 2, 1, 1, 1, 0));
  EXPECT_TRUE(sees(one_at({2, 2}, 2), rows, rows, 2, 1, 1, 0, 0));
  EXPECT_FALSE(sees(one_at({2, 2, 2}, 5), rows, rows, 2, 1, 1, 0, 1));
  EXPECT_TRUE(sees(one_at({2, 2, 2}, 5), rows, rows, 2, 0, 1, 0, 1));
  EXPECT_FALSE(sees(one_at({2, 2, 2, 2}, 6), rows, rows, 2, 0, 1, 1, 0));
  EXPECT_TRUE(sees(one_at({2, 2, 2, 2}, 6), rows, rows, 2, 0, 0, 1, 0));
  EXPECT_TRUE(sees(one_at({2, 2, 2, 2}, 6), rows, rows, 2, 1, 1, 1, 0));
}

TEST(Mask, BothPartsOfAnAndMustAllow) {
  const Rows rows = Rows::packed({2});
  const Mask both = Mask::keep(bools({1, 0}, {2})) & Mask::keep(bools({1, 1, 0, 1}, {2, 2}));
  EXPECT_TRUE(sees(both, rows, rows, 1, 0, 0, 0, 0));
  EXPECT_FALSE(sees(both, rows, rows, 1, 0, 0, 0, 1));
  EXPECT_FALSE(sees(both, rows, rows, 1, 0, 0, 1, 0));
}

TEST(Mask, DropDoesNotChangeItsTensor) {
  const Tensor hidden = bools({1, 0}, {2});
  Mask::drop(hidden);
  EXPECT_EQ(hidden.to_vector<uint8_t>(), (std::vector<uint8_t>{1, 0}));
}

TEST(Mask, ViewsOfTensorsAreTakenAsTheyRead) {
  const Tensor wide = bools({1, 0, 1, 1, 1, 0}, {2, 3});
  const Mask mask = Mask::keep(wide.columns(1, 2));
  const Rows rows = Rows::packed({2});
  EXPECT_FALSE(sees(mask, rows, rows, 1, 0, 0, 0, 0));
  EXPECT_TRUE(sees(mask, rows, rows, 1, 0, 0, 1, 0));
  EXPECT_FALSE(sees(mask, rows, rows, 1, 0, 0, 1, 1));
}

TEST(Mask, WrongTensorsAreErrorsThatSayWhatFits) {
  const Rows packed = Rows::packed({2, 3}), equal = Rows::equal(2, 2);
  const auto view = [](const Mask& mask, const Rows& rows) {
    mask.view("attention", rows, rows, 2);
  };
  EXPECT_NE(error_of([] {
              Mask::keep(Tensor::zeros({2, 2}, DType::f32));
            }).find("bool"),
            std::string::npos);
  EXPECT_NE(error_of([] { Mask::keep(Tensor()); }).find("bool"), std::string::npos);
  error_of([] { Mask::drop(Tensor::zeros({}, DType::boolean)); });
  error_of([] { Mask::keep(Tensor::zeros({1, 1, 1, 1, 1}, DType::boolean)); });
  const auto keep = [](const Shape& shape) {
    return Mask::keep(Tensor::zeros(shape, DType::boolean));
  };
  EXPECT_NE(error_of([&] { view(keep({3, 3}), packed); }).find("equal lengths"), std::string::npos);
  EXPECT_NE(error_of([&] { view(keep({4}), packed); }).find("5 packed keys, got 4"),
            std::string::npos);
  EXPECT_NE(error_of([&] { view(keep({2, 3}), equal); }).find("(2, 2)"), std::string::npos);
  EXPECT_NE(error_of([&] {
              view(keep({2, 3, 2, 2}), equal);
            }).find("(2, 2, 2, 2)"),
            std::string::npos);
  error_of([&] { view(keep({3, 2, 2}), equal); });
}

TEST(Mask, AnyMatrixFitsABatchWithoutSentences) {
  Mask::keep(Tensor::zeros({3, 3}, DType::boolean)).view("test", Rows(), Rows(), 2);
  Mask::keep(Tensor::zeros({0, 3, 3}, DType::boolean)).view("test", Rows(), Rows(), 2);
}

}  // namespace
}  // namespace rapt
