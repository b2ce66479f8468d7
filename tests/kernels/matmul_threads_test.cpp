// Products from several threads at once: they share what is compiled, and nothing else.
#include <cstring>
#include <thread>
#include <vector>

#include "rapt/base/random.h"
#include "rapt/base/runtime.h"
#include "rapt/kernels/matmul.h"
#include "tests/testing/testing.h"

extern "C" {
int omp_get_max_threads();
void omp_set_num_threads(int threads);
}

namespace rapt::kernels {
namespace {

std::vector<float> numbers(int64_t count, uint64_t seed) {
  Rng rng(seed);
  std::vector<float> all(static_cast<size_t>(count));
  for (float& value : all) value = static_cast<float>(rng.normal());
  return all;
}

// y, dx and dw of one layer, one after the other.
std::vector<float> layer(int64_t M, int64_t N, int64_t K) {
  const std::vector<float> x = numbers(M * K, 1), w = numbers(N * K, 2);
  std::vector<float> result(static_cast<size_t>(M * N + M * K + N * K));
  float *const y = result.data(), *const dx = y + M * N, *const dw = dx + M * K;
  linear(x.data(), K, w.data(), K, nullptr, y, N, M, N, K, RowPolicy::fast);
  linear_dx(y, N, w.data(), K, dx, K, M, N, K, false);
  linear_dw(y, N, x.data(), K, dw, K, M, N, K, false);
  return result;
}

TEST(Linear, ManyCallersGetWhatOneGets) {
  // Few rows, a tail that is copied, whole chunks; each caller meets each size, in another order.
  const int64_t rows[] = {5, 70, 100, 300, 256};
  std::vector<std::vector<float>> expected;
  for (const int64_t M : rows) expected.push_back(layer(M, 48, 33));
  Runtime shared({.threads = 3, .log = {}});
  std::vector<int> wrong(4);
  std::vector<std::thread> callers;
  for (size_t caller = 0; caller < wrong.size(); ++caller) {
    callers.emplace_back([&, caller] {
      const Runtime::Scope scope(shared);
      for (size_t i = 0; i < 20; ++i) {
        const size_t which = (i + caller) % std::size(rows);
        wrong[caller] += layer(rows[which], 48, 33) != expected[which];
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

TEST(Linear, LeavesTheCallersOpenMpSettingsAlone) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(3);
  layer(300, 48, 33);
  EXPECT_EQ(omp_get_max_threads(), 3);
  omp_set_num_threads(before);
}

}  // namespace
}  // namespace rapt::kernels
