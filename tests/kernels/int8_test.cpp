// The int8 products against plain loops, bit for bit, on every instruction set.
#include "rapt/kernels/int8.h"

#include <cstring>
#include <vector>

#include "rapt/base/memory.h"
#include "rapt/base/random.h"
#include "rapt/base/runtime.h"
#include "rapt/kernels/reference_int8.h"
#include "tests/testing/testing.h"

namespace rapt::kernels {
namespace {

std::vector<float> numbers(int64_t count, uint64_t seed) {
  Rng rng(seed);
  std::vector<float> all(static_cast<size_t>(count));
  for (float& value : all) value = static_cast<float>(rng.normal());
  return all;
}

struct Weight {
  int64_t N, K;
  std::vector<int8_t> q;
  std::vector<float> scales;
  std::vector<int32_t> sums;
  std::shared_ptr<void> packed;

  Weight(const std::vector<float>& w, int64_t outputs, int64_t channels)
      : N(outputs),
        K(channels),
        q(w.size()),
        scales(static_cast<size_t>(int8_outputs(N))),
        sums(scales.size(), 77),
        packed(allocate_block(int8_packed_bytes(N, K) + 1)) {
    int8_quantise(w.data(), K, N, K, q.data(), scales.data());
    int8_pack(q.data(), N, K, static_cast<int8_t*>(packed.get()), sums.data());
  }
  Int8Weight get() const {
    return {N, K, static_cast<const int8_t*>(packed.get()), scales.data(), sums.data()};
  }
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// y (M, N) by the reference.
std::vector<float> expected(const std::vector<float>& x, const Weight& w, const float* bias,
                            int64_t M) {
  std::vector<float> y(static_cast<size_t>(M * w.N));
  reference::int8_linear(x.data(), w.K, w.q.data(), w.scales.data(), bias, y.data(), w.N, M, w.N,
                         w.K);
  return y;
}

TEST(Int8, WeightsAreQuantisedAsThePlainLoopsDo) {
  for (const int64_t K : {1, 3, 16, 63, 64, 65, 200}) {
    const std::vector<float> w = numbers(5 * K, static_cast<uint64_t>(K));
    const Weight weight(w, 5, K);
    for (int64_t n = 0; n < 5; ++n) {
      std::vector<int8_t> q(static_cast<size_t>(K));
      EXPECT_EQ(reference::int8_quantise_output(w.data() + n * K, K, q.data()),
                weight.scales[static_cast<size_t>(n)]);
      EXPECT_EQ(std::memcmp(q.data(), weight.q.data() + n * K, q.size()), 0) << K << " " << n;
    }
  }
}

TEST(Int8, ProductsAreThePlainLoopsBitForBit) {
  uint64_t seed = 0;
  for (const int64_t K : {1, 7, 64, 130}) {
    for (const int64_t N : {1, 15, 16, 31, 32, 33, 70}) {
      const Weight w(numbers(N * K, ++seed), N, K);
      const std::vector<float> bias = numbers(N, ++seed);
      for (const int64_t M : {1, 2, 12, 13, 16, 17, 31, 32, 33, 65}) {
        const std::vector<float> x = numbers(M * K, ++seed);
        for (const float* b : {bias.data(), static_cast<const float*>(nullptr)}) {
          std::vector<float> y(static_cast<size_t>(M * N));
          int8_linear(x.data(), K, w.get(), 0, N, b, y.data(), N, M);
          ASSERT_TRUE(same_bits(y, expected(x, w, b, M))) << M << " " << N << " " << K;
        }
      }
    }
  }
}

// More tasks than one, more rows than a task takes.
TEST(Int8, LargeProductsAreThePlainLoopsWithAnyThreads) {
  const int64_t M = 300, N = 520, K = 512;
  const Weight w(numbers(N * K, 1), N, K);
  const std::vector<float> x = numbers(M * K, 2), bias = numbers(N, 3);
  const std::vector<float> all = expected(x, w, bias.data(), M);
  for (const int threads : {1, 3}) {
    Runtime runtime({.threads = threads, .log = {}});
    const Runtime::Scope scope(runtime);
    std::vector<float> y(static_cast<size_t>(M * N));
    int8_linear(x.data(), K, w.get(), 0, N, bias.data(), y.data(), N, M);
    EXPECT_TRUE(same_bits(y, all));
  }
}

// As an attention takes its queries, keys and values from one weight.
TEST(Int8, AnyRangeOfOutputsIsThatPartOfAll) {
  const int64_t M = 3, N = 100, K = 40;
  const Weight w(numbers(N * K, 4), N, K);
  const std::vector<float> x = numbers(M * K, 5), bias = numbers(N, 6);
  const std::vector<float> all = expected(x, w, bias.data(), M);
  for (const auto& [begin, count] : {std::pair<int64_t, int64_t>{0, 100},
                                     {1, 30},
                                     {31, 2},
                                     {32, 32},
                                     {40, 60},
                                     {99, 1},
                                     {50, 0}}) {
    const int64_t ld = count + 2;  // what stands between the rows stays
    std::vector<float> y(static_cast<size_t>(M * ld), -7);
    int8_linear(x.data(), K, w.get(), begin, count, bias.data() + begin, y.data(), ld, M);
    for (int64_t m = 0; m < M; ++m) {
      for (int64_t i = 0; i < ld; ++i)
        EXPECT_EQ(y[static_cast<size_t>(m * ld + i)],
                  i < count ? all[static_cast<size_t>(m * N + begin + i)] : -7)
            << begin << " " << count;
    }
  }
}

TEST(Int8, SumsReachTheEndsOfInt32) {
  const int64_t K = kInt8MostChannels;
  std::vector<float> w(static_cast<size_t>(2 * K), 1);
  std::fill(w.begin() + K, w.end(), -1.0f);
  const Weight weight(w, 2, K);
  const std::vector<float> x(static_cast<size_t>(K), 1);
  std::vector<float> y(2);
  int8_linear(x.data(), K, weight.get(), 0, 2, nullptr, y.data(), 2, 1);
  EXPECT_NEAR(y[0], 65536, 0.1);
  EXPECT_NEAR(y[1], -65536, 0.1);
}

TEST(Int8, ResultsAreNearThoseOfF32) {
  const int64_t N = 64, K = 512;
  const std::vector<float> x = numbers(K, 7), w = numbers(N * K, 8);
  const Weight weight(w, N, K);
  std::vector<float> y(static_cast<size_t>(N));
  int8_linear(x.data(), K, weight.get(), 0, N, nullptr, y.data(), N, 1);
  double error = 0, size = 0;
  for (int64_t n = 0; n < N; ++n) {
    double sum = 0;
    for (int64_t k = 0; k < K; ++k)
      sum += double{x[static_cast<size_t>(k)]} * double{w[static_cast<size_t>(n * K + k)]};
    error += std::pow(sum - double{y[static_cast<size_t>(n)]}, 2);
    size += sum * sum;
  }
  EXPECT_LT(std::sqrt(error / size), 0.015);
}

TEST(Int8, ABadRowSpoilsItselfAlone) {
  const int64_t M = 5, N = 33, K = 20;
  const Weight w(numbers(N * K, 9), N, K);
  std::vector<float> x = numbers(M * K, 10);
  const std::vector<float> all = expected(x, w, nullptr, M);
  x[static_cast<size_t>(1 * K + 19)] = NAN;
  x[static_cast<size_t>(2 * K)] = -INFINITY;
  x[static_cast<size_t>(3 * K)] = 3e38f;  // a range that f32 does not have
  x[static_cast<size_t>(3 * K + 1)] = -3e38f;
  std::vector<float> y(static_cast<size_t>(M * N));
  int8_linear(x.data(), K, w.get(), 0, N, nullptr, y.data(), N, M);
  for (size_t i = 0; i < y.size(); ++i) {
    const auto row = static_cast<int64_t>(i) / N;
    if (row == 0 || row == 4) {
      EXPECT_EQ(y[i], all[i]);
    } else {
      EXPECT_TRUE(std::isnan(y[i])) << row;
    }
  }
}

TEST(Int8, ABadRowOfAWeightSpoilsItsOutputAlone) {
  std::vector<float> w = numbers(3 * 10, 11);
  w[10] = INFINITY;
  const Weight weight(w, 3, 10);
  const std::vector<float> x = numbers(10, 12);
  std::vector<float> y(3);
  int8_linear(x.data(), 10, weight.get(), 0, 3, nullptr, y.data(), 3, 1);
  EXPECT_TRUE(std::isfinite(y[0]) && std::isnan(y[1]) && std::isfinite(y[2]));
}

TEST(Int8, ZerosAndTheSmallestNumbersGiveTheBias) {
  const Weight w(numbers(2 * 5, 13), 2, 5);
  const std::vector<float> x = {0, 0, 0, 0, 0, 1e-38f, -1e-38f, 0, 1e-45f, 0}, bias = {1, -2};
  std::vector<float> y(4);
  int8_linear(x.data(), 5, w.get(), 0, 2, bias.data(), y.data(), 2, 2);
  EXPECT_EQ(y, (std::vector<float>{1, -2, 1, -2}));
}

TEST(Int8, EmptySizesAreFine) {
  const Weight none({}, 3, 0);
  const std::vector<float> bias = {1, 2, 3};
  std::vector<float> y(6, -1);
  int8_linear(nullptr, 0, none.get(), 0, 3, bias.data(), y.data(), 3, 2);
  EXPECT_EQ(y, (std::vector<float>{1, 2, 3, 1, 2, 3}));
  int8_linear(nullptr, 0, none.get(), 0, 3, bias.data(), nullptr, 3, 0);
}

}  // namespace
}  // namespace rapt::kernels
