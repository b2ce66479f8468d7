#include "rapt/ops/elementwise.h"

#include <numbers>

#include "tests/testing/gradients.h"
#include "tests/testing/tensors.h"

namespace rapt {
namespace {

using testing::check_f32;
using testing::check_gradients;
using testing::error_of;
using testing::random_away_from_zero;
using testing::random_tensor;
using testing::same_bits;
using testing::values_of;
using Inputs = std::vector<Tensor>;

const std::vector<Shape> kShapes = {{0, 3}, {3, 0}, {0},    {1, 1},    {1},    {7},
                                    {3, 5}, {5, 1}, {1, 6}, {2, 3, 4}, {3, 67}};
const kernels::Dropout kSite{0.4, {11, 22}};

// A function of two tensors, on whole ones and on columns of wider ones.
void prove_pair(const std::function<Tensor(const Tensor&, const Tensor&)>& f) {
  for (const Shape& shape : kShapes) {
    const Inputs inputs = {random_tensor(shape, 1), random_tensor(shape, 2)};
    const auto on_whole = [&](const Inputs& x) { return f(x[0], x[1]); };
    EXPECT_TRUE(check_gradients(on_whole, inputs)) << shape.text();
    EXPECT_TRUE(check_f32(on_whole, inputs)) << shape.text();
  }
  const auto on_views = [&](const Inputs& x) { return f(x[0].columns(1, 3), x[0].columns(2, 3)); };
  EXPECT_TRUE(check_gradients(on_views, {random_tensor({4, 6}, 3)}));
  const auto mixed = [&](const Inputs& x) {
    return f(x[0].columns(4, 2).reshape({4, 2, 1}), x[1].rows(1, 4).reshape({4, 2, 1}));
  };
  EXPECT_TRUE(check_gradients(mixed, {random_tensor({4, 6}, 3), random_tensor({6, 2}, 4)}));
  const auto squared = [&](const Inputs& x) { return f(x[0], x[0]); };
  EXPECT_TRUE(check_gradients(squared, {random_tensor({3, 4}, 5)}));
}

void prove_single(const std::function<Tensor(const Tensor&)>& f) {
  for (const Shape& shape : kShapes) {
    const Inputs inputs = {random_away_from_zero(shape, 1)};
    const auto on_whole = [&](const Inputs& x) { return f(x[0]); };
    EXPECT_TRUE(check_gradients(on_whole, inputs)) << shape.text();
    EXPECT_TRUE(check_f32(on_whole, inputs)) << shape.text();
    const auto on_result = [&](const Inputs& x) { return f(scale(x[0], 1.5)); };
    EXPECT_TRUE(check_gradients(on_result, inputs)) << shape.text();
  }
  const auto on_view = [&](const Inputs& x) { return f(x[0].columns(1, 3)); };
  EXPECT_TRUE(check_gradients(on_view, {random_away_from_zero({4, 6}, 3)}));
  const auto on_one_row = [&](const Inputs& x) { return f(x[0].columns(1, 3)); };
  EXPECT_TRUE(check_gradients(on_one_row, {random_away_from_zero({1, 6}, 3)}));
}

TEST(Elementwise, GradientsOfAddMultiplyScale) {
  prove_pair([](const Tensor& a, const Tensor& b) { return add(a, b); });
  prove_pair([](const Tensor& a, const Tensor& b) { return multiply(a, b); });
  prove_single([](const Tensor& x) { return scale(x, -2.5); });
  prove_single([](const Tensor& x) { return scale(x, 0); });
}

TEST(Elementwise, GradientsOfTheActivations) {
  prove_single([](const Tensor& x) { return relu(x); });
  prove_single([](const Tensor& x) { return gelu(x); });
  prove_single([](const Tensor& x) { return gelu_tanh(x); });
}

TEST(Elementwise, GradientsThroughLentMemory) {
  const auto chain = [](const Inputs& x) {
    return relu(dropout(scale(x[0], 2), Rows::packed({x[0].dim(0)}), kSite));
  };
  EXPECT_TRUE(check_gradients(chain, {random_away_from_zero({5, 7}, 1)}));
}

TEST(Elementwise, GradientsOfDropout) {
  prove_single([](const Tensor& x) { return dropout(x, Rows::packed({x.dim(0)}), kSite); });
  for (const kernels::Dropout& site : {kSite, kernels::Dropout{}}) {
    prove_pair([&](const Tensor& a, const Tensor& b) {
      return dropout_add(a, b, Rows::packed({a.dim(0)}), site);
    });
    const auto lent = [&](const Inputs& x) {
      return dropout_add(scale(x[0], 2), x[1], Rows::packed({5}), site);
    };
    EXPECT_TRUE(check_gradients(lent, {random_tensor({5, 7}, 1), random_tensor({5, 7}, 2)}));
  }
}

TEST(Elementwise, ValuesFollowTheFormulas) {
  const Tensor a = random_tensor({3, 5}, 1, DType::f64, -4, 4), b = random_tensor({3, 5}, 2);
  const auto x = values_of(a), y = values_of(b);
  const auto sum = values_of(add(a, b)), product = values_of(multiply(a, b));
  const auto scaled = values_of(scale(a, 3)), positive = values_of(relu(a));
  const auto smooth = values_of(gelu(a)), tanh_form = values_of(gelu_tanh(a));
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(sum[i], x[i] + y[i]);
    EXPECT_EQ(product[i], x[i] * y[i]);
    EXPECT_EQ(scaled[i], 3 * x[i]);
    EXPECT_EQ(positive[i], std::max(x[i], 0.0));
    EXPECT_NEAR(smooth[i], x[i] * (1 + std::erf(x[i] / std::sqrt(2.0))) / 2, 1e-14);
    const double inner = std::sqrt(2 / std::numbers::pi) * (x[i] + 0.044715 * x[i] * x[i] * x[i]);
    EXPECT_NEAR(tanh_form[i], x[i] * (1 + std::tanh(inner)) / 2, 1e-14);
  }
}

TEST(Dropout, DropsByTheWordOfSamplePositionAndChannel) {
  const Rows rows = Rows::packed(std::vector<int64_t>{2, 3}, std::vector<uint64_t>{9, 4});
  const Tensor x = random_tensor({5, 130}, 1);
  const auto from = values_of(x), to = values_of(dropout(x, rows, kSite));
  const uint32_t threshold = dropout_threshold(kSite.probability);
  int64_t dropped = 0;
  for (int64_t i = 0; i < 5; ++i) {
    for (int64_t j = 0; j < 130; ++j) {
      const size_t at = static_cast<size_t>(i * 130 + j);
      const uint32_t word = philox_element(kSite.key, rows.ids()[i].sample, rows.ids()[i].position,
                                           static_cast<uint32_t>(j));
      dropped += word < threshold;
      EXPECT_EQ(to[at], word < threshold ? 0 : from[at] / 0.6) << i << " " << j;
    }
  }
  EXPECT_NEAR(static_cast<double>(dropped) / 650, 0.4, 0.1);
}

TEST(Dropout, WithoutProbabilityIsTheTensorItself) {
  const Tensor x = random_tensor({5, 3}, 1);
  EXPECT_TRUE(dropout(x, Rows(), {}).shares_memory(x));
  EXPECT_TRUE(same_bits(dropout_add(x, x, Rows(), {}), scale(x, 2)));
}

TEST(Dropout, WithAResidualEqualsItsParts) {
  const Tensor x = random_tensor({5, 70}, 1), residual = random_tensor({5, 70}, 2);
  const Rows rows = Rows::packed({2, 3});
  EXPECT_TRUE(
      same_bits(dropout_add(x, residual, rows, kSite), add(dropout(x, rows, kSite), residual)));
}

TEST(Dropout, ASentenceDropsTheSameAloneAndPacked) {
  const Tensor x = random_tensor({6, 9}, 1);
  const Rows together = Rows::packed(std::vector<int64_t>{2, 4}, std::vector<uint64_t>{3, 8});
  const Rows alone = Rows::packed(std::vector<int64_t>{4}, std::vector<uint64_t>{8});
  EXPECT_TRUE(
      same_bits(dropout(x, together, kSite).rows(2, 4), dropout(x.rows(2, 4), alone, kSite)));
}

TEST(Elementwise, MemoryIsLentOnlyWhereNobodyElseHoldsIt) {
  Tensor x = random_tensor({4, 3}, 1);
  const Tensor before = x.contiguous_copy();
  const void* memory = std::as_const(x).raw();
  const Tensor kept = relu(x);
  EXPECT_NE(kept.raw(), memory);
  EXPECT_TRUE(same_bits(x, before));
  const Tensor lent = relu(std::move(x));
  EXPECT_EQ(lent.raw(), memory);
  EXPECT_TRUE(same_bits(lent, kept));
  Tensor wide = random_tensor({4, 6}, 2);
  Tensor view = wide.columns(0, 3);
  wide = Tensor();
  EXPECT_TRUE(relu(std::move(view)).contiguous());  // the only handle, but with gaps
}

TEST(Elementwise, ANodeThatSavedItsResultKeepsIt) {
  // relu saves its result; a second one must not overwrite it, or the first one's slope is wrong.
  const auto twice = [](const Inputs& x) {
    const Rows rows = Rows::packed({x[0].dim(0)});
    return dropout(relu(scale(x[0], 1)), rows, kSite);
  };
  EXPECT_TRUE(check_gradients(twice, {random_away_from_zero({6, 5}, 4)}));
}

TEST(Elementwise, WrongInputsAreErrors) {
  const Tensor a = random_tensor({2, 3}, 1), b = random_tensor({3, 2}, 2);
  EXPECT_NE(error_of([&] { add(a, b); }).find("(2, 3) and (3, 2)"), std::string::npos);
  EXPECT_NE(error_of([&] { multiply(a, a.to(DType::f32)); }).find("f64 and f32"),
            std::string::npos);
  EXPECT_NE(
      error_of([&] { relu(testing::ids({1})); }).find("relu: expected f32, f64 or bf16, got i32"),
      std::string::npos);
  EXPECT_NE(error_of([&] { dropout(a, Rows::packed({3}), kSite); }).find("expected 3 rows"),
            std::string::npos);
  error_of([&] { dropout_add(a, a, Rows::packed({3}), kSite); });
  error_of([&] { dropout_add(a, b, Rows::packed({2}), kSite); });
}

}  // namespace
}  // namespace rapt
