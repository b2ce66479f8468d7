// A model is immutable while it runs: threads share it, each with Gradients of its own.
#include <thread>

#include "rapt/base/runtime.h"
#include "rapt/ops/cross_entropy.h"
#include "rapt/ops/elementwise.h"
#include "rapt/ops/layer_norm.h"
#include "rapt/ops/linear.h"
#include "tests/testing/small_ops.h"

namespace rapt {
namespace {

using testing::random_tensor;

struct Model {
  Parameter hidden{random_tensor({16, 8}, 1, DType::f32)};
  Parameter shift{random_tensor({16}, 2, DType::f32)};
  Parameter gain{random_tensor({16}, 3, DType::f32)};
  Parameter out{random_tensor({5, 16}, 4, DType::f32)};

  double run(uint64_t seed, Gradients& gradients) const {
    const Pass pass = Pass::train(gradients, seed, 1);
    const Rows rows = Rows::packed({3, 4});
    const Tensor x = random_tensor({7, 8}, seed, DType::f32);
    Tensor h = relu(linear(x, pass.use(hidden), pass.use(shift)));
    h = layer_norm(dropout(h, rows, pass.scope("hidden").dropout(0.25)), pass.use(gain), {}, 1e-5);
    const Loss loss =
        cross_entropy(linear(h, pass.use(out)), testing::ids({0, 1, 2, 3, 4, -100, 1}));
    backward(loss.sum);
    return loss.sum.item();
  }
};

TEST(SharedModel, ThreadsWithTheirOwnGradientsDoNotDisturbEachOther) {
  const Model model;
  constexpr int kThreads = 4, kSteps = 20;
  const auto steps = [&](int thread) {
    std::vector<std::pair<double, std::vector<float>>> results;
    Gradients gradients;
    for (int step = 0; step < kSteps; ++step) {
      gradients.clear();
      const double loss = model.run(static_cast<uint64_t>(100 * thread + step), gradients);
      results.emplace_back(loss, gradients.of(model.hidden).to_vector<float>());
    }
    return results;
  };
  std::vector<decltype(steps(0))> together(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] { together[static_cast<size_t>(t)] = steps(t); });
  }
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < kThreads; ++t) EXPECT_EQ(together[static_cast<size_t>(t)], steps(t)) << t;
}

}  // namespace
}  // namespace rapt
