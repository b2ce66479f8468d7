#include "rapt/optim/optimizer.h"
#include "tests/optim/parameters.h"

namespace rapt::optim {
namespace {

using rapt::testing::error_of;
using rapt::testing::named;
using rapt::testing::random_tensor;
using rapt::testing::same_bits;
using rapt::testing::send;

using Make = std::unique_ptr<Optimizer> (*)(std::vector<NamedParameter>);
std::unique_ptr<Optimizer> plain_sgd(std::vector<NamedParameter> p) { return make_sgd(p); }
std::unique_ptr<Optimizer> momentum_sgd(std::vector<NamedParameter> p) {
  return make_sgd(p, {.momentum = 0.9, .dampening = 0.1, .common = {}});
}
std::unique_ptr<Optimizer> adam(std::vector<NamedParameter> p) { return make_adam(p); }
std::unique_ptr<Optimizer> adamw(std::vector<NamedParameter> p) {
  return make_adamw(p, {.common = {.weight_decay = 0.1, .max_norm = 1}});
}

struct Training {
  explicit Training(Make make) {
    optimizer = make({named("matrix", matrix), named("vector", vector), named("late", late)});
  }
  void steps(int from, int to) {
    for (int step = from; step < to; ++step) {
      gradients.clear();
      const auto seed = static_cast<uint64_t>(10 * step);
      send(gradients, matrix, random_tensor({5, 3}, seed, DType::f32));
      send(gradients, vector, random_tensor({7}, seed + 1, DType::f32));
      if (step > 3) send(gradients, late, random_tensor({2}, seed + 2, DType::f32));
      EXPECT_TRUE(optimizer->step(gradients, 1, 0.1).applied);
    }
  }
  Parameter matrix{random_tensor({5, 3}, 1, DType::f32)}, vector{random_tensor({7}, 2, DType::f32)},
      late{random_tensor({2}, 3, DType::f32)};
  std::unique_ptr<Optimizer> optimizer;
  Gradients gradients;
};

// A copy as a checkpoint would hold it.
std::vector<StateTensor> saved(const Optimizer& optimizer) {
  std::vector<StateTensor> state = optimizer.state();
  for (StateTensor& s : state) s.value = s.value.contiguous_copy();
  return state;
}

TEST(OptimizerState, R20_ResumedEqualsUnbrokenBitForBit) {
  for (const Make make : {plain_sgd, momentum_sgd, adam, adamw}) {
    Training unbroken(make), first(make), second(make);
    unbroken.steps(0, 6);
    first.steps(0, 3);
    second.steps(7, 8);  // state of its own, that must be gone
    second.matrix.value() = first.matrix.value();
    second.vector.value() = first.vector.value();
    second.late.value() = first.late.value();
    second.optimizer->load_state(saved(*first.optimizer));
    EXPECT_EQ(second.optimizer->steps(), 3);
    second.steps(3, 6);
    EXPECT_TRUE(same_bits(second.matrix.value(), unbroken.matrix.value()));
    EXPECT_TRUE(same_bits(second.vector.value(), unbroken.vector.value()));
    EXPECT_TRUE(same_bits(second.late.value(), unbroken.late.value()));
    const auto a = second.optimizer->state(), b = unbroken.optimizer->state();
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i].name, b[i].name);
      EXPECT_TRUE(same_bits(a[i].value, b[i].value)) << a[i].name;
    }
  }
}

TEST(OptimizerState, ALoadedStateSharesNothingWithItsSource) {
  Training run(adam), other(adam);
  run.steps(0, 1);
  const auto state = saved(*run.optimizer);
  other.optimizer->load_state(state);
  for (const StateTensor& s : other.optimizer->state()) {
    for (const StateTensor& t : state) EXPECT_FALSE(s.value.shares_memory(t.value));
  }
}

TEST(OptimizerState, NamesSayWhatTheTensorsAre) {
  Training run(adam);
  run.steps(0, 1);
  std::vector<std::string> names;
  for (const StateTensor& s : run.optimizer->state()) names.push_back(s.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"steps", "matrix.steps", "matrix.mean", "matrix.square",
                                      "vector.steps", "vector.mean", "vector.square"}));
}

TEST(OptimizerState, R20_AStateThatDoesNotFitIsRefusedAndChangesNothing) {
  Training run(adam);
  run.steps(0, 2);
  const auto good = saved(*run.optimizer);
  const auto refused = [&](const char* word, auto&& spoil) {
    auto state = saved(*run.optimizer);
    spoil(state);
    const std::string message = error_of([&] { run.optimizer->load_state(state); });
    EXPECT_NE(message.find(word), std::string::npos) << message;
    const auto now = run.optimizer->state();
    ASSERT_EQ(now.size(), good.size());
    for (size_t i = 0; i < now.size(); ++i) EXPECT_TRUE(same_bits(now[i].value, good[i].value));
    EXPECT_EQ(run.optimizer->steps(), 2);
  };
  refused("expected a tensor steps", [](auto& state) { state.clear(); });
  refused("matrix.square", [](auto& state) { state.erase(state.begin() + 3); });
  refused("vector.mean", [](auto& state) { state.erase(state.begin() + 4); });  // left over
  refused("matrix.mean", [](auto& state) { state[2].value = Tensor::zeros({3, 5}, DType::f32); });
  refused("matrix.mean", [](auto& state) { state[2].value = Tensor::zeros({5, 3}, DType::f64); });
  refused("other.mean", [](auto& state) {
    state.push_back({"other.mean", Tensor::zeros({1}, DType::f32)});
  });
  refused("twice", [](auto& state) { state.push_back(state.back()); });
  refused("at least 0",
          [](auto& state) { state[1].value = Tensor::from(std::vector<int64_t>{-1}, {1}); });
}

TEST(OptimizerState, TheStateOfAnotherRuleIsRefused) {
  Training sgd(momentum_sgd), other(adam);
  sgd.steps(0, 1);
  error_of([&] { other.optimizer->load_state(sgd.optimizer->state()); });
}

}  // namespace
}  // namespace rapt::optim
