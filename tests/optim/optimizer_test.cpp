#include "rapt/optim/optimizer.h"

#include <limits>

#include "rapt/base/runtime.h"
#include "tests/optim/parameters.h"

namespace rapt::optim {
namespace {

using rapt::testing::difference;
using rapt::testing::error_of;
using rapt::testing::filled;
using rapt::testing::named;
using rapt::testing::random_tensor;
using rapt::testing::same_bits;
using rapt::testing::send;
using rapt::testing::values_of;

// Three parameters, an optimizer of each kind over them.
struct Model {
  explicit Model(DType type = DType::f32) : dtype(type) {
    const std::vector<NamedParameter> all = {named("first", first), named("second", second),
                                             named("third", third)};
    optimizers[0] = make_sgd(all, {.momentum = 0.9, .common = {.weight_decay = 0.1}});
    optimizers[1] = make_adam(all);
    optimizers[2] = make_adamw(all, {.common = {.weight_decay = 0.1}});
  }

  // Everything that a step may change.
  std::vector<Tensor> everything(const Optimizer& optimizer) const {
    std::vector<Tensor> result;
    for (const Parameter& p : {first, second, third}) {
      result.push_back(p.value().contiguous_copy());
    }
    for (const StateTensor& s : optimizer.state()) result.push_back(s.value.contiguous_copy());
    return result;
  }

  DType dtype;
  Parameter first{random_tensor({4, 3}, 1, dtype)}, second{random_tensor({5}, 2, dtype)},
      third{random_tensor({2, 2}, 3, dtype)};
  std::unique_ptr<Optimizer> optimizers[3];
};

void expect_same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(same_bits(a[i], b[i])) << i;
}

TEST(Optimizer, R13_NothingCountedChangesNothing) {
  Model model;
  for (const auto& optimizer : model.optimizers) {
    Gradients gradients;
    send(gradients, model.first, random_tensor({4, 3}, 7, DType::f32));
    optimizer->step(gradients, 1, 0.1);
    const std::vector<Tensor> before = model.everything(*optimizer);
    const double zero = 0;
    for (const double scale : {0.0, 1 / zero}) {  // however the count of 0 was divided by
      const StepResult result = optimizer->step(gradients, scale, 0.1);
      EXPECT_FALSE(result.applied);
      EXPECT_EQ(result.bad_parameter, "");
    }
    gradients.clear();
    EXPECT_FALSE(optimizer->step(gradients, 1, 0.1).applied);
    expect_same(model.everything(*optimizer), before);
    EXPECT_EQ(optimizer->steps(), 1);
  }
}

TEST(Optimizer, R17_AGradientThatIsNotFiniteIsNamedAndChangesNothing) {
  Model model;
  for (const double max_norm : {0.0, 1.0}) {
    for (const double bad : {double(INFINITY), -double(INFINITY), double(NAN)}) {
      Gradients gradients;
      const std::vector<NamedParameter> all = {
          named("first", model.first), named("second", model.second), named("third", model.third)};
      const auto optimizer = make_adamw(all, {.common = {.max_norm = max_norm}});
      for (const bool spoiled : {false, true, true}) {
        gradients.clear();
        send(gradients, model.first, random_tensor({4, 3}, 7, DType::f32));
        Tensor second = random_tensor({5}, 8, DType::f32);
        if (spoiled) second.data<float>()[3] = static_cast<float>(bad);
        send(gradients, model.second, second);
        send(gradients, model.third,
             spoiled ? filled({2, 2}, NAN, DType::f32) : filled({2, 2}, 1, DType::f32));
        const std::vector<Tensor> before = model.everything(*optimizer);
        const StepResult result = optimizer->step(gradients, 0.5, 0.1);
        EXPECT_EQ(result.applied, !spoiled);
        EXPECT_EQ(result.bad_parameter, spoiled ? "second" : "");
        EXPECT_EQ(std::isfinite(result.norm), !spoiled);
        if (spoiled) expect_same(model.everything(*optimizer), before);
      }
      EXPECT_EQ(optimizer->steps(), 1);
    }
  }
}

TEST(Optimizer, R17_AHugeGradientIsClippedOrNamedButNeverPoisonsTheState) {
  const auto step = [](double max_norm, std::unique_ptr<Optimizer> (*make)(
                                            std::vector<NamedParameter>, const AdamOptions&)) {
    const Parameter weight(random_tensor({4}, 1, DType::f32));
    const Tensor before = weight.value().contiguous_copy();
    const auto optimizer =
        make({named("w", weight)}, {.common = {.max_norm = max_norm, .check_finite = true}});
    Gradients gradients;
    send(gradients, weight, Tensor::from(std::vector<float>{1, 3e38f, 1, -1}, {4}));
    const StepResult result = optimizer->step(gradients, 1, 0.1);
    EXPECT_NEAR(result.norm / 3e38, 1, 1e-6);
    for (const StateTensor& s : optimizer->state()) {
      for (const double v : values_of(s.value)) EXPECT_TRUE(std::isfinite(v)) << s.name;
    }
    EXPECT_EQ(result.applied, max_norm > 0);
    EXPECT_EQ(result.bad_parameter, max_norm > 0 ? "" : "w");
    EXPECT_EQ(same_bits(before, weight.value()), max_norm == 0);
  };
  step(0, make_adam);
  step(0, make_adamw);
  step(100, make_adamw);
}

TEST(Optimizer, ClipsTheGlobalNormAsPyTorchDoes) {
  for (const DType dtype : {DType::f64, DType::f32}) {
    const Parameter a(filled({2, 2}, 0, dtype)), b(filled({3}, 0, dtype));
    const auto optimizer = make_sgd({named("a", a), named("b", b)}, {.common = {.max_norm = 2}});
    Gradients gradients;
    send(gradients, a, filled({2, 2}, 6, dtype));
    send(gradients, b, filled({3}, -8, dtype));
    const double norm = 0.5 * std::sqrt(4 * 36 + 3 * 64.0), clip = 2 / (norm + 1e-6);
    const StepResult result = optimizer->step(gradients, 0.5, 1);
    EXPECT_NEAR(result.norm, norm, 1e-12);
    EXPECT_NEAR(values_of(a.value())[1], -3 * clip, 1e-6);
    EXPECT_NEAR(values_of(b.value())[2], 4 * clip, 1e-6);
    gradients.clear();
    const std::vector<double> before = values_of(a.value());
    send(gradients, a, filled({2, 2}, 0.5, dtype));  // norm 1: not clipped
    EXPECT_NEAR(optimizer->step(gradients, 1, 1).norm, 1, 1e-12);
    EXPECT_NEAR(values_of(a.value())[0], before[0] - 0.5, 1e-6);
  }
}

TEST(Optimizer, TheNormIsNotComputedWhereNobodyAsks) {
  const Parameter weight(filled({2}, 1));
  const auto optimizer = make_sgd({named("w", weight)}, {.common = {.check_finite = false}});
  Gradients gradients;
  send(gradients, weight, filled({2}, 1));
  const StepResult result = optimizer->step(gradients, 1, 0.5);
  EXPECT_TRUE(result.applied);
  EXPECT_TRUE(std::isnan(result.norm));
  EXPECT_EQ(values_of(weight.value()), (std::vector<double>{0.5, 0.5}));
}

TEST(Optimizer, AParameterWithoutGradientIsSkippedAndKeepsItsOwnCount) {
  Model model(DType::f64);
  for (const auto& optimizer : model.optimizers) {
    const Tensor second = model.second.value().contiguous_copy();
    Gradients gradients;
    for (int step = 0; step < 2; ++step) {
      gradients.clear();
      send(gradients, model.first, random_tensor({4, 3}, 7));
      if (step == 1) send(gradients, model.third, random_tensor({2, 2}, 8));
      optimizer->step(gradients, 1, 0.1);
    }
    EXPECT_TRUE(same_bits(model.second.value(), second));
    std::vector<std::pair<std::string, double>> counters;
    for (const StateTensor& s : optimizer->state()) {
      if (s.value.dtype() == DType::i64) counters.emplace_back(s.name, s.value.item());
      EXPECT_EQ(s.name.find("second"), std::string::npos);
    }
    EXPECT_EQ(counters, (std::vector<std::pair<std::string, double>>{
                            {"steps", 2}, {"first.steps", 2}, {"third.steps", 1}}));
  }
}

TEST(Optimizer, SaysWhatItsFirstStepWillTake) {
  const Parameter first(filled({4, 3}, 1, DType::f32)), second(filled({5}, 1, DType::f32));
  const auto adam = make_adamw({named("first", first), named("second", second)}, {});
  const auto plain = make_sgd({named("first", first), named("second", second)}, {});
  EXPECT_EQ(adam->bytes_to_come(), 2 * 4 * (12 + 5));
  EXPECT_EQ(plain->bytes_to_come(), 0);
  Gradients gradients;
  send(gradients, first, random_tensor({4, 3}, 7).to(DType::f32));
  adam->step(gradients, 1, 0.1);
  EXPECT_EQ(adam->bytes_to_come(), 2 * 4 * 5);
}

TEST(Optimizer, RowsOfAStackedParameterAreParametersOfTheirOwn) {
  const Parameter stacked(filled({6, 2}, 1));
  const auto optimizer =
      make_sgd({{"query", stacked, 0, 2}, {"key", stacked, 2, 2}, {"value", stacked, 4, 2}},
               {.momentum = 0.5, .common = {}});
  Gradients gradients;
  const Tensor key = gradients.use(stacked).rows(2, 2);
  backward(record(empty_like(key), {key}, [](const Tensor& dy, Sink& d) { d.give(0, dy); }),
           filled({2, 2}, 1));
  optimizer->step(gradients, 1, 0.25);
  EXPECT_EQ(values_of(stacked.value()),
            (std::vector<double>{1, 1, 1, 1, 0.75, 0.75, 0.75, 0.75, 1, 1, 1, 1}));
  ASSERT_EQ(optimizer->state().size(), 3u);
  EXPECT_EQ(optimizer->state()[2].name, "key.momentum");
  EXPECT_EQ(optimizer->state()[2].value.shape(), Shape({2, 2}));
}

TEST(Optimizer, TheTwinIsWrittenWithTheMaster) {
  Parameter weight(random_tensor({70, 9}, 1, DType::f32));
  weight.make_twin();
  const void* memory = weight.twin().raw();
  for (const bool rows : {false, true}) {
    for (auto make : {make_adam, make_adamw}) {
      const auto optimizer =
          make(rows ? std::vector<NamedParameter>{{"low", weight, 0, 33}, {"high", weight, 33, 37}}
                    : std::vector<NamedParameter>{named("w", weight)},
               {});
      Gradients gradients;
      send(gradients, weight, random_tensor({70, 9}, 2, DType::f32));
      optimizer->step(gradients, 1, 0.1);
      EXPECT_EQ(weight.twin().raw(), memory);
      EXPECT_TRUE(same_bits(weight.twin(), weight.value().to(DType::bf16)));
    }
  }
}

TEST(Optimizer, OneThreadAndManyGiveTheSameBits) {
  const auto run = [](int threads) {
    Runtime runtime({.threads = threads, .log = {}});
    const Runtime::Scope scope(runtime);
    const Parameter large(random_tensor({300, 700}, 1, DType::f32));
    const Parameter small(random_tensor({13}, 2, DType::f32));
    const auto optimizer = make_adamw({named("large", large), named("small", small)},
                                      {.common = {.weight_decay = 0.1, .max_norm = 1}});
    Gradients gradients;
    std::vector<Tensor> results;
    for (int step = 0; step < 2; ++step) {
      gradients.clear();
      send(gradients, large, random_tensor({300, 700}, 3, DType::f32));
      send(gradients, small, random_tensor({13}, 4, DType::f32));
      const double norm = optimizer->step(gradients, 0.5, 0.1).norm;
      results.push_back(Tensor::full({1}, DType::f64, norm));
    }
    results.push_back(large.value());
    results.push_back(small.value());
    return results;
  };
  const std::vector<Tensor> one = run(1);
  expect_same(run(2), one);
  expect_same(run(5), one);
}

TEST(Optimizer, RefusesParametersThatOverlapUnknowingly) {
  const Tensor memory = random_tensor({4, 2}, 1);
  const Parameter whole(memory), part(memory.rows(1, 2)), apart(memory.rows(0, 1)),
      beside(memory.rows(1, 3));
  EXPECT_NE(error_of([&] {
              make_adam({named("a", whole), named("b", part)});
            }).find("overlap"),
            std::string::npos);
  error_of([&] { make_adam({{"a", whole, 0, 2}, {"b", whole, 1, 3}}); });
  EXPECT_EQ(make_adam({named("a", apart), named("b", beside)})->parameters().size(), 2u);
  EXPECT_NE(error_of([&] {
              make_adam({named("a", apart), named("a", beside)});
            }).find("twice"),
            std::string::npos);
  error_of([&] { make_adam({{"a", whole, 3, 2}}); });
  error_of([&] { make_adam({{"a", whole, -1, 2}}); });
  error_of([&] { make_adam({{"a", Parameter(), 0, 1}}); });
  error_of([&] { make_adam({{"a", Parameter(Tensor::full({}, DType::f32, 1)), 0, 1}}); });
}

TEST(Optimizer, RefusesRatesAndScalesThatCannotBe) {
  const Parameter weight(filled({2}, 1));
  const auto optimizer = make_adam({named("w", weight)});
  Gradients gradients;
  send(gradients, weight, filled({2}, 1));
  for (const double bad : {-1.0, double(NAN)}) {
    EXPECT_NE(error_of([&] { optimizer->step(gradients, bad, 1); }).find("scale"),
              std::string::npos);
    EXPECT_NE(error_of([&] { optimizer->step(gradients, 1, bad); }).find("rate"),
              std::string::npos);
  }
  error_of([&] { optimizer->step(gradients, 1, INFINITY); });
  EXPECT_EQ(values_of(weight.value()), (std::vector<double>{1, 1}));
}

}  // namespace
}  // namespace rapt::optim
