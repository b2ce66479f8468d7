// The f32 products of a frozen model, where the CPU has tiles.
#include "rapt/kernels/panels.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "rapt/base/memory.h"
#include "rapt/base/random.h"
#include "rapt/base/runtime.h"
#include "rapt/kernels/reference_matmul.h"
#include "tests/testing/testing.h"

namespace rapt::kernels {
namespace {

using testing::relative_difference;

constexpr double kTolerance = 2e-6;

std::vector<float> numbers(int64_t count, uint64_t seed) {
  Rng rng(seed);
  std::vector<float> all(static_cast<size_t>(count));
  for (float& value : all) value = static_cast<float>(rng.normal());
  return all;
}

struct Panels {
  int64_t N, K;
  std::shared_ptr<void> block;
  bool whole;

  Panels(const std::vector<float>& w, int64_t outputs, int64_t channels)
      : N(outputs), K(channels), block(allocate_block(panel_floats(N, K) * sizeof(float) + 1)) {
    whole = pack_panels(w.data(), K, N, K, static_cast<float*>(block.get()));
  }
  std::vector<float> times(const std::vector<float>& x, int64_t M, const float* bias) const {
    std::vector<float> y(static_cast<size_t>(M * N));
    panel_linear(x.data(), K, static_cast<const float*>(block.get()), K, 0, N, bias, y.data(), N,
                 M);
    return y;
  }
};

std::vector<double> wide(const std::vector<float>& x) { return {x.begin(), x.end()}; }

std::vector<double> expected(const std::vector<float>& x, const std::vector<float>& w,
                             const std::vector<float>& bias, int64_t M, int64_t N, int64_t K) {
  const std::vector<double> dx = wide(x), dw = wide(w), db = wide(bias);
  std::vector<double> y(static_cast<size_t>(M * N));
  reference::linear(dx.data(), K, dw.data(), K, db.data(), y.data(), N, M, N, K);
  return y;
}

bool same_bits(const float* a, const float* b, int64_t count) {
  return std::memcmp(a, b, static_cast<size_t>(count) * sizeof(float)) == 0;
}

#define RAPT_REQUIRE_TILES() \
  if (!has_panels()) GTEST_SKIP() << "this instruction set has no tiles"

TEST(Panels, ProductsAreThoseOfTheReference) {
  RAPT_REQUIRE_TILES();
  uint64_t seed = 0;
  for (const auto& [N, K] : {std::pair<int64_t, int64_t>{1, 1},
                             {31, 33},
                             {32, 64},
                             {100, 512},
                             {70, 513},
                             {200, 1100}}) {
    const std::vector<float> w = numbers(N * K, ++seed), bias = numbers(N, ++seed);
    const Panels panels(w, N, K);
    ASSERT_TRUE(panels.whole);
    for (const int64_t M : {1, 16, 31, 32, 33, 70, 300}) {
      const std::vector<float> x = numbers(M * K, ++seed);
      EXPECT_LT(relative_difference(std::span<const float>(panels.times(x, M, bias.data())),
                                    std::span<const double>(expected(x, w, bias, M, N, K))),
                kTolerance)
          << M << " " << N << " " << K;
    }
  }
}

TEST(Panels, ARowHasTheSameBitsWithAnyMatesAndThreads) {
  RAPT_REQUIRE_TILES();
  const int64_t M = 300, N = 150, K = 1100;
  const Panels panels(numbers(N * K, 1), N, K);
  const std::vector<float> x = numbers(M * K, 2);
  const std::vector<float> all = panels.times(x, M, nullptr);
  for (const int threads : {1, 3}) {
    Runtime runtime({.threads = threads, .log = {}});
    const Runtime::Scope scope(runtime);
    for (const auto& [row, count] :
         {std::pair<int64_t, int64_t>{0, 1}, {5, 3}, {40, 33}, {255, 45}, {0, 300}}) {
      const std::vector<float> some(x.begin() + row * K, x.begin() + (row + count) * K);
      EXPECT_TRUE(
          same_bits(panels.times(some, count, nullptr).data(), all.data() + row * N, count * N))
          << row;
    }
  }
}

TEST(Panels, AnyRangeOfOutputsIsThatPartOfAll) {
  RAPT_REQUIRE_TILES();
  const int64_t M = 3, N = 100, K = 40;
  const Panels panels(numbers(N * K, 4), N, K);
  const std::vector<float> x = numbers(M * K, 5), bias = numbers(N, 6);
  const std::vector<float> all = panels.times(x, M, bias.data());
  for (const auto& [begin, count] :
       {std::pair<int64_t, int64_t>{0, 100}, {32, 68}, {32, 5}, {64, 32}, {96, 4}, {96, 0}}) {
    const int64_t ld = count + 2;  // what stands between the rows stays
    std::vector<float> y(static_cast<size_t>(M * ld), -7);
    panel_linear(x.data(), K, static_cast<const float*>(panels.block.get()), K, begin, count,
                 bias.data() + begin, y.data(), ld, M);
    for (int64_t m = 0; m < M; ++m) {
      for (int64_t i = 0; i < ld; ++i)
        EXPECT_EQ(y[static_cast<size_t>(m * ld + i)],
                  i < count ? all[static_cast<size_t>(m * N + begin + i)] : -7)
            << begin << " " << count;
    }
  }
}

TEST(Panels, ABadRowSpoilsItselfAlone) {
  RAPT_REQUIRE_TILES();
  const int64_t M = 40, N = 33, K = 20;
  const std::vector<float> w = numbers(N * K, 7), bias = numbers(N, 8);
  const Panels panels(w, N, K);
  std::vector<float> x = numbers(M * K, 9);
  const std::vector<float> all = panels.times(x, M, bias.data());
  x[static_cast<size_t>(1 * K + 19)] = NAN;
  x[static_cast<size_t>(35 * K)] = INFINITY;
  const std::vector<float> y = panels.times(x, M, bias.data());
  for (int64_t m = 0; m < M; ++m) {
    if (m == 1 || m == 35) continue;
    EXPECT_TRUE(same_bits(y.data() + m * N, all.data() + m * N, N)) << m;
  }
  for (int64_t n = 0; n < N; ++n) {
    EXPECT_TRUE(std::isnan(y[static_cast<size_t>(N + n)]));
    EXPECT_EQ(y[static_cast<size_t>(35 * N + n)],
              w[static_cast<size_t>(n * K)] > 0 ? INFINITY : -INFINITY);
  }
}

TEST(Panels, ANumberThatBf16CannotSayIsMultipliedAsItIs) {
  RAPT_REQUIRE_TILES();
  const std::vector<float> w(32 * 4, 0.25f);
  std::vector<float> x = {1, std::numeric_limits<float>::max(), -1, 0};
  const std::vector<float> y = Panels(w, 32, 4).times(x, 1, nullptr);
  for (const float value : y) EXPECT_EQ(value, std::numeric_limits<float>::max() * 0.25f);
}

TEST(Panels, AWeightWithoutPartsIsReported) {
  RAPT_REQUIRE_TILES();
  for (const float bad : {NAN, -INFINITY, std::numeric_limits<float>::max()}) {
    std::vector<float> w = numbers(40 * 5, 10);
    w[199] = bad;
    EXPECT_FALSE(Panels(w, 40, 5).whole) << bad;
  }
}

TEST(Panels, EmptySizesAreFine) {
  RAPT_REQUIRE_TILES();
  const std::vector<float> bias = {1, 2, 3};
  std::vector<float> y(6, -1);
  panel_linear(nullptr, 0, nullptr, 0, 0, 3, bias.data(), y.data(), 3, 2);
  EXPECT_EQ(y, (std::vector<float>{1, 2, 3, 1, 2, 3}));
  panel_linear(nullptr, 0, nullptr, 0, 0, 3, bias.data(), nullptr, 3, 0);
}

}  // namespace
}  // namespace rapt::kernels
