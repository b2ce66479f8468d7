// The vocabulary's projection with its loss in chunks, against the two ops that it stands for.
#include "rapt/ops/projection_loss.h"

#include "rapt/ops/linear.h"
#include "rapt/ops/select.h"
#include "rapt/tensor/gradients.h"
#include "tests/testing/gradients.h"
#include "tests/testing/tensors.h"

namespace rapt {
namespace {

using testing::check_f32;
using testing::check_gradients;
using testing::difference;
using testing::equal_within;
using testing::error_of;
using testing::ids;
using testing::random_tensor;
using testing::same_bits;
using testing::values_of;
using Inputs = std::vector<Tensor>;

const Tensor kTargets = ids({0, 2, -100, 4, 2, 1, -100});

TEST(ProjectionLoss, Gradients) {
  for (const int64_t chunk : {0, 1, 3}) {
    for (const double smoothing : {0.0, 0.2}) {
      const auto f = [&](const Inputs& x) {
        return projection_loss(x[0], x[1], x.size() > 2 ? x[2] : Tensor(), kTargets,
                               {.label_smoothing = smoothing}, chunk)
            .sum;
      };
      const Inputs all = {random_tensor({7, 3}, 1), random_tensor({5, 3}, 2),
                          random_tensor({5}, 3)};
      EXPECT_TRUE(check_gradients(f, all)) << chunk;
      EXPECT_TRUE(check_f32(f, all)) << chunk;
      EXPECT_TRUE(check_gradients(f, {all[0], all[1]})) << chunk;
    }
  }
}

TEST(ProjectionLoss, EqualsTheTwoOpsThatItStandsFor) {
  for (const DType type : {DType::f32, DType::f64}) {
    const Tensor x = random_tensor({7, 6}, 1, type), w = random_tensor({5, 6}, 2, type),
                 b = random_tensor({5}, 3, type);
    const auto gradients_of =
        [&](const std::function<Loss(const Tensor&, const Tensor&, const Tensor&)>& f) {
          Gradients gradients;
          const Tensor wx = gradients.watch(x), ww = gradients.watch(w), wb = gradients.watch(b);
          const Loss loss = f(wx, ww, wb);
          EXPECT_EQ(loss.count, 5);
          backward(loss.sum, Tensor::full({1}, type, 0.5));
          return std::vector<Tensor>{loss.sum.detach(), gradients.of(wx), gradients.of(ww),
                                     gradients.of(wb)};
        };
    const CrossEntropyOptions options{.label_smoothing = 0.1};
    const auto composed = gradients_of([&](const Tensor& a, const Tensor& c, const Tensor& d) {
      return cross_entropy(linear(a, c, d), kTargets, options);
    });
    for (const int64_t chunk : {0, 2}) {
      const auto fused = gradients_of([&](const Tensor& a, const Tensor& c, const Tensor& d) {
        return projection_loss(a, c, d, kTargets, options, chunk);
      });
      for (size_t i = 0; i < fused.size(); ++i)
        EXPECT_LE(difference(fused[i], composed[i]), equal_within(type)) << i;
    }
  }
}

TEST(ProjectionLoss, R13_NothingCountedIsNothingLearnt) {
  Gradients gradients;
  const Tensor x = gradients.watch(random_tensor({2, 3}, 1)),
               w = gradients.watch(random_tensor({5, 3}, 2));
  const Loss loss = projection_loss(x, w, {}, ids({-100, -100}));
  EXPECT_EQ(loss.count, 0);
  EXPECT_EQ(loss.sum.item(), 0);
  backward(loss.sum);
  for (const Tensor& gradient : {gradients.of(x), gradients.of(w)}) {
    for (const double value : values_of(gradient)) EXPECT_EQ(value, 0);
  }
  EXPECT_EQ(projection_loss(random_tensor({0, 3}, 1), w, {}, ids({})).count, 0);
}

TEST(ProjectionLoss, SaysWhatDoesNotFit) {
  const Tensor x = random_tensor({2, 3}, 1), w = random_tensor({5, 3}, 2);
  EXPECT_EQ(error_of([&] {
              projection_loss(x, w, {}, ids({1, 5}));
            }),
            "projection_loss: expected targets below 5, got 5 in row 1");
  EXPECT_EQ(error_of([&] { projection_loss(x, w, {}, ids({1})); }),
            "projection_loss: expected 2 targets of i32, got (1) of i32");
  EXPECT_EQ(error_of([&] {
              projection_loss(x, random_tensor({5, 4}, 1), {}, ids({1, 1}));
            }),
            "projection_loss: expected 4 input channels, got 3");
}

TEST(Select, RowsInAnyOrderAndTwice) {
  const Tensor x = Tensor::from<double>({1, 2, 3, 4, 5, 6}, {3, 2});
  const std::vector<int32_t> rows = {2, 0, 2};
  EXPECT_EQ(values_of(select_rows(x, rows)), (std::vector<double>{5, 6, 1, 2, 5, 6}));
  EXPECT_EQ(select_rows(ids({7, 8, 9}), rows).to_vector<int32_t>(),
            (std::vector<int32_t>{9, 7, 9}));
  EXPECT_TRUE(check_gradients([&](const Inputs& in) { return select_rows(in[0], rows); },
                              {random_tensor({4, 3}, 1)}));
  EXPECT_TRUE(
      check_gradients([&](const Inputs& in) { return select_rows(in[0].columns(1, 2), rows); },
                      {random_tensor({4, 4}, 1)}));
  EXPECT_EQ(error_of([&] { select_rows(x, std::vector<int32_t>{3}); }),
            "select_rows: expected rows below 3, got 3");
}

TEST(Select, MeanOfSentences) {
  const Rows rows = Rows::packed({2, 0, 1});
  const Tensor x = Tensor::from<double>({1, 2, 3, 4, 5, 6}, {3, 2});
  EXPECT_EQ(values_of(mean_rows(x, rows)), (std::vector<double>{2, 3, 0, 0, 5, 6}));
  EXPECT_TRUE(check_gradients([&](const Inputs& in) { return mean_rows(in[0], rows); },
                              {random_tensor({3, 4}, 1)}));
  EXPECT_TRUE(check_f32([&](const Inputs& in) { return mean_rows(in[0], rows); },
                        {random_tensor({3, 4}, 1)}));
}

}  // namespace
}  // namespace rapt
