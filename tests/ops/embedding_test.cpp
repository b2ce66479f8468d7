#include "rapt/ops/embedding.h"

#include "rapt/ops/elementwise.h"
#include "rapt/ops/linear.h"
#include "tests/testing/gradients.h"
#include "tests/testing/tensors.h"

namespace rapt {
namespace {

using testing::check_f32;
using testing::check_gradients;
using testing::difference;
using testing::error_of;
using testing::ids;
using testing::random_tensor;
using testing::same_bits;
using testing::values_of;
using Inputs = std::vector<Tensor>;

const kernels::Dropout kSite{0.3, {5, 6}};
const std::vector<int32_t> kIds = {3, 0, 3, 3, 1};  // 2 and 4 are never named

TEST(Embedding, Gradients) {
  const auto plain = [](const Inputs& x) { return embedding(ids(kIds), x[0]); };
  for (const int64_t C : {1, 4, 70}) {
    EXPECT_TRUE(check_gradients(plain, {random_tensor({5, C}, 1)}));
    EXPECT_TRUE(check_f32(plain, {random_tensor({5, C}, 1)}));
    for (const kernels::Dropout& site : {kernels::Dropout{}, kSite}) {
      const auto full = [&](const Inputs& x) {
        return embedding(ids(kIds), x[0], 2.5, random_tensor({3, C}, 9, x[0].dtype()),
                         Rows::packed({2, 3}), site);
      };
      EXPECT_TRUE(check_gradients(full, {random_tensor({5, C}, 1)}));
      EXPECT_TRUE(check_f32(full, {random_tensor({5, C}, 1)}));
    }
  }
  const auto none = [](const Inputs& x) { return embedding(ids({}), x[0]); };
  EXPECT_TRUE(check_gradients(none, {random_tensor({5, 4}, 1)}));
  EXPECT_TRUE(check_gradients(none, {random_tensor({0, 4}, 1)}));
  EXPECT_TRUE(check_gradients(plain, {random_tensor({5, 0}, 1)}));
}

TEST(Embedding, GradientsOfPartsOfATable) {
  const auto rows = [](const Inputs& x) { return embedding(ids(kIds), x[0].rows(2, 5)); };
  EXPECT_TRUE(check_gradients(rows, {random_tensor({9, 4}, 1)}));
  const auto columns = [](const Inputs& x) { return embedding(ids(kIds), x[0].columns(2, 3)); };
  EXPECT_TRUE(check_gradients(columns, {random_tensor({5, 7}, 1)}));
}

TEST(Embedding, GradientsOfManyRowsOfOneId) {
  std::vector<int32_t> many(200, 1);
  many[7] = 0;
  const auto f = [&](const Inputs& x) {
    return embedding(ids(many), x[0], 0.5, {}, Rows::packed({200}), kSite);
  };
  EXPECT_TRUE(check_gradients(f, {random_tensor({3, 130}, 1)}, {.most = 40}));
}

TEST(Embedding, ATiedTableGetsTheGradientsOfBothUses) {
  const auto tied = [](const Inputs& x) { return linear(embedding(ids(kIds), x[0]), x[0]); };
  EXPECT_TRUE(check_gradients(tied, {random_tensor({5, 4}, 1)}));
  EXPECT_TRUE(check_f32(tied, {random_tensor({5, 4}, 1)}));
}

TEST(Embedding, ValuesFollowTheFormula) {
  const Tensor table = random_tensor({5, 4}, 1), positions = random_tensor({9, 4}, 2);
  const Rows rows({{.row = 0, .count = 2, .position = 6, .sample = 0},
                   {.row = 2, .count = 3, .position = 0, .sample = 1}});
  const auto y = values_of(embedding(ids(kIds), table, 3, positions, rows, {}));
  const auto t = values_of(table), p = values_of(positions);
  for (size_t i = 0; i < 5; ++i) {
    for (size_t j = 0; j < 4; ++j) {
      const size_t position = rows.ids()[i].position;
      EXPECT_NEAR(y[i * 4 + j], 3 * t[static_cast<size_t>(kIds[i]) * 4 + j] + p[position * 4 + j],
                  1e-15);
    }
  }
  EXPECT_LE(difference(embedding(ids(kIds), table, 3, positions, rows, kSite),
                       dropout(Tensor::from(y, {5, 4}), rows, kSite)),
            1e-15);
}

TEST(Embedding, R24_APositionBeyondTheTableNamesBothLengths) {
  const Tensor table = random_tensor({5, 4}, 1), positions = random_tensor({4, 4}, 2);
  const auto run = [&](int64_t length) {
    return embedding(ids(std::vector<int32_t>(static_cast<size_t>(length), 1)), table, 1, positions,
                     Rows::packed({length}), {});
  };
  EXPECT_EQ(run(3).dim(0), 3);
  EXPECT_EQ(run(4).dim(0), 4);
  const std::string message = error_of([&] { run(5); });
  EXPECT_NE(message.find("5 tokens"), std::string::npos) << message;
  EXPECT_NE(message.find("4 positions"), std::string::npos) << message;
  const Rows cached({{.row = 0, .count = 1, .position = 4, .sample = 0}});  // one step too far
  error_of([&] { embedding(ids({1}), table, 1, positions, cached, {}); });
}

TEST(Embedding, WrongInputsAreErrors) {
  const Tensor table = random_tensor({5, 4}, 1);
  EXPECT_NE(error_of([&] { embedding(ids({0, 5}), table); }).find("below 5"), std::string::npos);
  EXPECT_NE(error_of([&] {
              embedding(ids({0, -1}), table);
            }).find("got -1 in row 1"),
            std::string::npos);
  error_of([&] { embedding(Tensor::zeros({2}, DType::i64), table); });
  error_of([&] { embedding(Tensor::zeros({}, DType::i32), table); });
  error_of([&] { embedding(ids({0}), table.reshape({20})); });
  error_of([&] { embedding(ids({0}), table, 1, {}, Rows::packed({2}), {}); });
  error_of([&] { embedding(ids({0}), table, 1, random_tensor({4, 3}, 2), Rows::packed({1}), {}); });
  Gradients gradients;
  const Tensor trained = gradients.watch(random_tensor({4, 4}, 2));
  EXPECT_NE(error_of([&] {
              embedding(ids({0}), table, 1, trained, Rows::packed({1}), {});
            }).find("trained"),
            std::string::npos);
}

TEST(Embedding, APositionTableMayBeLongerThanTheText) {
  const Tensor table = random_tensor({5, 4}, 1);
  EXPECT_TRUE(same_bits(
      embedding(ids(kIds), table),
      embedding(ids(kIds), table, 1, Tensor::zeros({100, 4}, DType::f64), Rows::packed({5}), {})));
}

}  // namespace
}  // namespace rapt
