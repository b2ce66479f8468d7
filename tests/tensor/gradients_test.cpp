#include "rapt/tensor/gradients.h"

#include "rapt/tensor/pass.h"
#include "tests/testing/small_ops.h"

namespace rapt {
namespace {

using testing::error_of;
using testing::random_tensor;
using testing::stack_rows;
using testing::times_by_add;
using testing::times_by_give;
using testing::times_by_write;

Tensor ones(const Shape& shape) { return Tensor::full(shape, DType::f64, 1); }

TEST(Gradients, MicroBatchesAddUpInOneBufferThatStays) {
  const Parameter weight(random_tensor({2, 3}, 1));
  Gradients gradients;
  const auto run = [&](double factor) {
    backward(times_by_add(gradients.use(weight), factor), ones({2, 3}));
  };
  run(2);
  run(3);
  const void* buffer = std::as_const(gradients).has(weight) ? gradients.of(weight).raw() : nullptr;
  EXPECT_EQ(gradients.of(weight).to_vector<double>(), std::vector<double>(6, 5));
  gradients.clear();
  EXPECT_FALSE(gradients.has(weight));
  EXPECT_FALSE(gradients.of(weight).defined());
  run(7);
  EXPECT_EQ(gradients.of(weight).to_vector<double>(), std::vector<double>(6, 7));
  const Tensor after = gradients.of(weight);
  EXPECT_EQ(after.raw(), buffer);
}

TEST(Gradients, TheFirstWriterOfAStepDoesNotReadTheBuffer) {
  const Parameter weight(random_tensor({2, 3}, 1));
  Gradients gradients;
  using Times = Tensor (*)(const Tensor&, double);
  for (const Times verb : {Times(times_by_write), Times(times_by_add), Times(times_by_give)}) {
    backward(verb(gradients.use(weight), 2), ones({2, 3}));
    Tensor buffer = gradients.of(weight);
    std::fill_n(buffer.data<double>(), 6, NAN);
    gradients.clear();
    backward(verb(gradients.use(weight), 3), ones({2, 3}));
    EXPECT_EQ(gradients.of(weight).to_vector<double>(), std::vector<double>(6, 3));
    gradients.clear();
  }
}

// A large gradient that an op has made is not copied, and there are not two buffers for the next.
TEST(Gradients, AGivenGradientBecomesThatOfAParameter) {
  const Parameter weight(random_tensor({2, 3}, 1));
  Gradients gradients;
  for (int step = 0; step < 3; ++step) {
    const void* given = nullptr;
    const Tensor leaf = gradients.use(weight);
    backward(record(empty_like(leaf), {leaf},
                    [&](const Tensor&, Sink& d) {
                      Tensor gradient = Tensor::full({2, 3}, DType::f64, 5);
                      given = std::as_const(gradient).raw();
                      d.give(0, std::move(gradient));
                    }),
             ones({2, 3}));
    const Tensor held = gradients.of(weight);
    EXPECT_EQ(std::as_const(held).raw(), given);
    EXPECT_EQ(gradients.of(weight).to_vector<double>(), std::vector<double>(6, 5));
    gradients.clear();
    EXPECT_FALSE(gradients.of(weight).defined());
  }
}

TEST(Gradients, ATiedParameterUsedInTwoOpsGetsTheSum) {
  const Parameter table(random_tensor({4, 3}, 1));
  const Parameter projection = table;
  EXPECT_TRUE(projection.same_as(table));
  Gradients gradients;
  const Pass pass = Pass::train(gradients, 1, 1);
  const Tensor h = times_by_add(pass.use(table), 2);
  backward(stack_rows({times_by_write(h, 5), times_by_add(pass.use(projection), 3)}), ones({8, 3}));
  EXPECT_EQ(gradients.of(table).to_vector<double>(), std::vector<double>(12, 13));
  EXPECT_TRUE(gradients.of(projection).shares_memory(gradients.of(table)));
}

TEST(Gradients, APartOfAParameterIsWrittenAlone) {
  const Parameter stacked(random_tensor({6, 2}, 1));
  const NamedParameter query{"query", stacked, 0, 2}, key{"key", stacked, 2, 2},
      value{"value", stacked, 4, 2};
  Gradients gradients;
  EXPECT_FALSE(gradients.has(query));
  const Pass pass = Pass::train(gradients, 1, 1);
  testing::poison_free_memory({12});
  backward(times_by_write(pass.use(stacked, 2, 2), 3), ones({2, 2}));
  EXPECT_FALSE(gradients.has(query));
  EXPECT_TRUE(gradients.has(key));
  EXPECT_FALSE(gradients.has(value));
  EXPECT_TRUE(gradients.has(stacked));
  EXPECT_EQ(gradients.of(stacked).to_vector<double>(),
            (std::vector<double>{0, 0, 0, 0, 3, 3, 3, 3, 0, 0, 0, 0}));
}

TEST(Gradients, AParameterThatWasNotUsedHasNone) {
  const Parameter weight(random_tensor({2}, 1)), other(random_tensor({2}, 2));
  Gradients gradients;
  const Tensor unused = gradients.use(other);
  backward(times_by_write(gradients.use(weight), 1), ones({2}));
  EXPECT_FALSE(gradients.has(other));
  EXPECT_FALSE(gradients.of(other).defined());
}

TEST(Gradients, AWatchedTensorWithoutUsersGetsZeros) {
  Gradients gradients;
  const Tensor leaf = gradients.watch(random_tensor({2, 3}, 1).columns(1, 2));
  EXPECT_EQ(gradients.of(leaf).to_vector<double>(), std::vector<double>(4, 0));
  EXPECT_NE(error_of([&] { gradients.of(random_tensor({2}, 1)); }).find("watch()"),
            std::string::npos);
  error_of([&] { gradients.watch(Tensor::zeros({2}, DType::i32)); });
  error_of([&] { gradients.watch(Tensor()); });
}

TEST(Gradients, NewValuesOfAParameterAreUsed) {
  Parameter weight(Tensor::full({2}, DType::f64, 1));
  Gradients gradients;
  EXPECT_EQ(gradients.use(weight).to_vector<double>(), (std::vector<double>{1, 1}));
  weight.value() = Tensor::full({2}, DType::f64, 5);  // as loading a checkpoint may do
  EXPECT_EQ(gradients.use(weight).to_vector<double>(), (std::vector<double>{5, 5}));
  weight.value() = Tensor::full({3}, DType::f64, 5);
  EXPECT_NE(error_of([&] { gradients.use(weight); }).find("(2)"), std::string::npos);
}

TEST(Parameter, IsAContiguousFloatTensor) {
  error_of([] { Parameter(Tensor::zeros({2}, DType::i32)); });
  error_of([] { Parameter(Tensor::zeros({2, 2}, DType::f32).columns(0, 1)); });
  error_of([] { Parameter{Tensor()}; });
  EXPECT_FALSE(Parameter().defined());
  const Parameter a(Tensor::zeros({2}, DType::f32)), b(Tensor::zeros({2}, DType::f32));
  EXPECT_NE(a.id(), b.id());
  EXPECT_FALSE(a.same_as(b));
}

TEST(Parameter, TheTwinIsTheMasterRounded) {
  Parameter weight(Tensor::from(std::vector<float>{1.f, 1.00390625f, -3.f}, {3}));
  EXPECT_FALSE(weight.twin().defined());
  weight.make_twin();
  EXPECT_EQ(weight.twin().to(DType::f32).to_vector<float>(), (std::vector<float>{1.f, 1.f, -3.f}));
  Parameter proof(Tensor::zeros({2}, DType::f64));
  error_of([&] { proof.make_twin(); });
}

}  // namespace
}  // namespace rapt
