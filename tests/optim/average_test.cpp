#include "rapt/optim/average.h"

#include "tests/testing/tensors.h"
#include "tests/testing/testing.h"

namespace rapt::optim {
namespace {

using namespace testing;

std::vector<NamedParameter> one(const Parameter& p) { return {{"p", p, 0, p.shape()[0]}}; }

void set(const Parameter& p, double x) {
  Tensor value = p.value();
  for (int64_t i = 0; i < value.numel(); ++i) value.data<double>()[i] = x;
}

double first_of(const Parameter& p) {
  const Tensor value = p.value();
  return value.data<double>()[0];
}

TEST(MovingAverage, FollowsTheFirstStepsAndThenSlowsDown) {
  Parameter p(Tensor::from(std::vector<double>{1, 1, 1}, {3}));
  MovingAverage average(one(p), 0.5);
  double expected = 1;
  for (int n = 1; n <= 12; ++n) {
    set(p, n);
    average.update();
    const double keep = std::min(0.5, n / (n + 9.0));
    expected = keep * expected + (1 - keep) * n;
    average.swap();
    EXPECT_NEAR(first_of(p), expected, 1e-12) << n;
    average.swap();
    EXPECT_EQ(first_of(p), n);
  }
}

TEST(MovingAverage, StateRestoresIt) {
  Parameter p(Tensor::from(std::vector<double>{1, 2}, {2}));
  MovingAverage average(one(p), 0.9), other(one(p), 0.9);
  for (int n = 0; n < 5; ++n) {
    set(p, n);
    average.update();
  }
  other.load_state(average.state());
  set(p, 7);
  average.update();
  other.update();
  EXPECT_TRUE(same_bits(average.state()[1].value, other.state()[1].value));
  EXPECT_NE(error_of([&] { other.load_state({}); }).find("updates"), std::string::npos);
}

TEST(MovingAverage, RefusesDecaysThatAreNone) {
  Parameter p(Tensor::from(std::vector<double>{1}, {1}));
  for (const double decay : {0.0, 1.0, -1.0, 2.0, std::nan("")})
    EXPECT_NE(error_of([&] { MovingAverage(one(p), decay); }), "") << decay;
}

}  // namespace
}  // namespace rapt::optim
