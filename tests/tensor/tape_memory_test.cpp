#include "rapt/base/memory.h"
#include "rapt/tensor/tape.h"
#include "tests/testing/small_ops.h"

namespace rapt {
namespace {

using testing::put;
using testing::random_tensor;

TEST(TapeMemory, MemoryOfABackwardGoesBack) {
  Gradients gradients;
  const Tensor leaf = gradients.watch(random_tensor({1000}, 1));
  const Tensor dy = Tensor::full({1000}, DType::f64, 1);
  const auto run = [&] {
    Tensor y = leaf;
    for (int i = 0; i < 20; ++i) {
      const Tensor x = y;
      Tensor z = empty_like(x);
      put(x, 1, z, false);
      y = record(z, {x}, [x](const Tensor& g, Sink& d) { put(g, 1, d.write(0), false); });
    }
    const int64_t before = memory_use().in_use;
    backward(y, dy);
    return before - memory_use().in_use;
  };
  run();  // the leaf's buffer stays
  const int64_t idle = memory_use().in_use;
  // 19 results that the closures held; the last is still held by y.
  EXPECT_GE(run(), 19 * 1000 * static_cast<int64_t>(sizeof(double)));
  EXPECT_EQ(memory_use().in_use, idle);
}

}  // namespace
}  // namespace rapt
