#include "rapt/ops/feed_forward.h"

#include <utility>

#include "rapt/ops/elementwise.h"
#include "rapt/ops/linear.h"
#include "tests/testing/gradients.h"
#include "tests/testing/tensors.h"

namespace rapt {
namespace {

using kernels::Activation;
using testing::check_f32;
using testing::check_gradients;
using testing::error_of;
using testing::random_tensor;
using testing::same_bits;
using Inputs = std::vector<Tensor>;

constexpr Activation kKinds[] = {Activation::relu, Activation::gelu, Activation::gelu_tanh};
const kernels::Dropout kSites[] = {{}, {0.3, philox_key(1, 2, 3)}};

// x, both weights and both biases.
Inputs inputs_of(int64_t rows, int64_t in, int64_t hidden, int64_t out) {
  return {random_tensor({rows, in}, 1), random_tensor({hidden, in}, 2), random_tensor({hidden}, 3),
          random_tensor({out, hidden}, 4), random_tensor({out}, 5)};
}

Tensor activated(Activation f, Tensor x) {
  if (f == Activation::relu) return relu(std::move(x));
  return f == Activation::gelu ? gelu(x) : gelu_tanh(x);
}

// The result and the gradients of all inputs.
Inputs run(const Inputs& values, DType type, const auto& f) {
  Gradients gradients;
  Inputs x;
  for (const Tensor& value : values) x.push_back(gradients.watch(value.to(type)));
  const Tensor y = f(x);
  backward(y, random_tensor(y.shape(), 9, type));
  Inputs all = {y.detach()};
  for (const Tensor& input : x) all.push_back(gradients.of(input).contiguous_copy());
  return all;
}

TEST(FeedForward, GradientsOfAllInputs) {
  for (const Activation kind : kKinds) {
    for (const kernels::Dropout& site : kSites) {
      for (const int64_t n : {0, 1, 5}) {
        const Inputs inputs = inputs_of(n, 4, 7, 3);
        const Rows rows = Rows::packed({n});
        const auto with_bias = [&](const Inputs& x) {
          return feed_forward(x[0], {x[1], x[2]}, kind, rows, site, {x[3], x[4]});
        };
        EXPECT_TRUE(check_gradients(with_bias, inputs));
        EXPECT_TRUE(check_f32(with_bias, inputs));
        const auto without = [&](const Inputs& x) {
          return feed_forward(x[0], {x[1], {}}, kind, rows, site, {x[2], {}});
        };
        EXPECT_TRUE(check_gradients(without, {inputs[0], inputs[1], inputs[3]}));
      }
    }
  }
}

TEST(FeedForward, HasTheBitsOfTheOpsOneAfterTheOther) {
  const Inputs values = inputs_of(70, 33, 130, 40);
  const Rows rows = Rows::packed({30, 40});
  for (const Activation kind : kKinds) {
    for (const kernels::Dropout& site : kSites) {
      for (const DType type : {DType::f32, DType::f64}) {
        const Inputs want = run(values, type, [&](const Inputs& x) {
          Tensor hidden = activated(kind, linear(x[0], x[1], x[2]));
          return linear(dropout(std::move(hidden), rows, site), x[3], x[4]);
        });
        const auto together = [&](const Inputs& x) {
          return feed_forward(x[0], {x[1], x[2]}, kind, rows, site, {x[3], x[4]});
        };
        const Inputs got = run(values, type, together);
        for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(same_bits(got[i], want[i])) << i;
      }
    }
  }
}

TEST(FeedForward, LeavesItsInputAndAddsToItsGradient) {
  for (const Activation kind : kKinds) {
    const auto twice = [&](const Inputs& x) {
      const Tensor hidden = scale(x[0], 2);
      return add(feed_forward(hidden, {x[1], x[2]}, kind, Rows::packed({6}), {}, {x[3], x[4]}),
                 hidden);
    };
    EXPECT_TRUE(check_gradients(twice, inputs_of(6, 3, 5, 3)));
  }
}

TEST(FeedForward, WrongInputsAreErrors) {
  const Inputs x = inputs_of(2, 3, 5, 4);
  const auto error = [&](const Tensor& w1, const Tensor& w2, const kernels::Dropout& site) {
    return error_of([&] {
      feed_forward(x[0], {w1, {}}, Activation::relu, Rows::packed({3}), site, {w2, {}});
    });
  };
  EXPECT_NE(error(x[3], x[3], {}).find("feed_forward: expected 5 input channels, got 3"),
            std::string::npos);
  EXPECT_NE(error(x[1], x[1], {}).find("feed_forward: expected 3 input channels, got 5"),
            std::string::npos);
  EXPECT_NE(error(x[1], x[3], kSites[1]).find("expected 3 rows"), std::string::npos);
}

}  // namespace
}  // namespace rapt
