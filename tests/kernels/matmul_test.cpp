// The products against the f64 reference: all tails, leading dimensions, starts, and threads.
#include "rapt/kernels/matmul.h"

#include <cstring>
#include <memory>
#include <vector>

#include "rapt/base/memory.h"
#include "rapt/base/random.h"
#include "rapt/base/runtime.h"
#include "rapt/kernels/reference_matmul.h"
#include "tests/testing/testing.h"

namespace rapt::kernels {
namespace {

// Stands between the rows of a matrix: a product must leave it alone.
constexpr double kGuard = -1234.5;

template <class T>
double number(T value) {
  if constexpr (std::is_same_v<T, bf16>) {
    return static_cast<float>(value);
  } else {
    return value;
  }
}

// A matrix whose rows are `gap` elements longer than `cols` and whose first element is not aligned.
template <class T>
struct Matrix {
  int64_t rows, cols, ld;
  std::vector<T> storage;

  Matrix(int64_t height, int64_t width, int64_t gap = 0)
      : rows(height),
        cols(width),
        ld(width + gap),
        storage(static_cast<size_t>(rows * ld + 2), T(kGuard)) {}
  T* data() { return storage.data() + 1; }
  const T* data() const { return storage.data() + 1; }

  Matrix& randomize(uint64_t seed) {
    Rng rng(seed);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < cols; ++c) data()[r * ld + c] = T(static_cast<float>(rng.normal()));
    }
    return *this;
  }
  // The elements without the gaps, in f64.
  std::vector<double> values() const {
    std::vector<double> result;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < cols; ++c) result.push_back(number(data()[r * ld + c]));
    }
    return result;
  }
  bool guards_stand() const {
    const auto stands = [](T value) { return number(value) == number(T(kGuard)); };
    bool all = stands(storage.front()) && stands(storage.back());
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = cols; c < ld; ++c) all = all && stands(data()[r * ld + c]);
    }
    return all;
  }
};

template <class T>
Matrix<double> wide(const Matrix<T>& from) {
  Matrix<double> to(from.rows, from.cols);
  const std::vector<double> values = from.values();
  std::copy(values.begin(), values.end(), to.data());
  return to;
}

template <class A, class B>
double difference(const Matrix<A>& a, const Matrix<B>& b) {
  const std::vector<double> x = a.values(), y = b.values();
  return testing::relative_difference(std::span<const double>(x), std::span<const double>(y));
}

template <class T>
bool same_bits(const Matrix<T>& a, const Matrix<T>& b) {
  return a.storage.size() == b.storage.size() &&
         std::memcmp(a.storage.data(), b.storage.data(), a.storage.size() * sizeof(T)) == 0;
}

template <class T>
constexpr double tolerance() {
  return sizeof(T) == 8 ? 1e-12 : sizeof(T) == 4 ? 1e-5 : 1.0 / 128;
}

// What biases and gradients of parameters are made of.
template <class T>
using Master = std::conditional_t<sizeof(T) == 8, double, float>;

struct Sizes {
  int64_t M, N, K;
};
std::ostream& operator<<(std::ostream& out, const Sizes& s) {
  return out << "M " << s.M << " N " << s.N << " K " << s.K;
}

// Every tail of rows, of outputs and of inputs around the vectors and register blocks, and the ends
// of few rows, of copied tails, of chunks and of slices.
std::vector<Sizes> many_sizes() {
  std::vector<Sizes> all = {{1, 1, 1},      {14, 300, 1100}, {14, 1100, 300}, {100, 520, 70},
                            {1100, 40, 30}, {70, 40, 4200},  {70, 4200, 40},  {300, 50, 600},
                            {70, 40, 1024}, {70, 1024, 40},  {70, 40, 2048},  {1200, 150, 90},
                            {70, 9000, 40}, {70, 40, 9000}};
  for (int64_t M = 0; M <= 34; ++M) all.push_back({M, 19, 21});
  for (const int64_t M : {63, 64, 65, 70, 80, 255, 256, 257, 320, 330, 530})
    all.push_back({M, 33, 37});
  for (int64_t N = 0; N <= 34; ++N) all.push_back({5, N, 19});
  for (int64_t K = 0; K <= 34; ++K) all.push_back({6, 11, K});
  for (const int64_t size : {0, 1, 15, 16, 17, 65}) {
    all.push_back({70, size, 19});
    all.push_back({70, 19, size});
  }
  return all;
}

template <class X, class Y>
void expect_linear(const Sizes& s, int64_t gap, bool with_bias, RowPolicy policy) {
  const auto x = Matrix<X>(s.M, s.K, gap).randomize(1);
  const auto w = Matrix<X>(s.N, s.K, 2 * gap).randomize(2);
  const auto bias = Matrix<Master<X>>(1, s.N).randomize(3);
  Matrix<Y> y(s.M, s.N, gap);
  linear(x.data(), x.ld, w.data(), w.ld, with_bias ? bias.data() : nullptr, y.data(), y.ld, s.M,
         s.N, s.K, policy);
  const auto x64 = wide(x), w64 = wide(w), bias64 = wide(bias);
  Matrix<double> expected(s.M, s.N);
  reference::linear(x64.data(), x64.ld, w64.data(), w64.ld, with_bias ? bias64.data() : nullptr,
                    expected.data(), expected.ld, s.M, s.N, s.K);
  EXPECT_LE(difference(y, expected), tolerance<Y>())
      << s << " gap " << gap << " bias " << with_bias;
  EXPECT_TRUE(y.guards_stand()) << s;
}

template <class T>
void expect_dx(const Sizes& s, int64_t gap, bool accumulate) {
  const auto dy = Matrix<T>(s.M, s.N, gap).randomize(1);
  const auto w = Matrix<T>(s.N, s.K, 2 * gap).randomize(2);
  auto dx = Matrix<T>(s.M, s.K, gap);
  if (accumulate) dx.randomize(3);
  auto expected = wide(dx);
  const auto dy64 = wide(dy), w64 = wide(w);
  linear_dx(dy.data(), dy.ld, w.data(), w.ld, dx.data(), dx.ld, s.M, s.N, s.K, accumulate);
  reference::linear_dx(dy64.data(), dy64.ld, w64.data(), w64.ld, expected.data(), expected.ld, s.M,
                       s.N, s.K, accumulate);
  EXPECT_LE(difference(dx, expected), tolerance<T>())
      << s << " gap " << gap << " accumulate " << accumulate;
  EXPECT_TRUE(dx.guards_stand()) << s;
}

template <class T>
void expect_dw(const Sizes& s, int64_t gap, bool accumulate) {
  const auto dy = Matrix<T>(s.M, s.N, gap).randomize(1);
  const auto x = Matrix<T>(s.M, s.K, 2 * gap).randomize(2);
  auto dw = Matrix<Master<T>>(s.N, s.K, gap);
  if (accumulate) dw.randomize(3);
  auto expected = wide(dw);
  const auto dy64 = wide(dy), x64 = wide(x);
  linear_dw(dy.data(), dy.ld, x.data(), x.ld, dw.data(), dw.ld, s.M, s.N, s.K, accumulate);
  reference::linear_dw(dy64.data(), dy64.ld, x64.data(), x64.ld, expected.data(), expected.ld, s.M,
                       s.N, s.K, accumulate);
  EXPECT_LE(difference(dw, expected), tolerance<Master<T>>())
      << s << " gap " << gap << " accumulate " << accumulate;
  EXPECT_TRUE(dw.guards_stand()) << s;
}

template <class T>
void expect_db(const Sizes& s, int64_t gap, bool accumulate) {
  const auto dy = Matrix<T>(s.M, s.N, gap).randomize(1);
  auto db = Matrix<Master<T>>(1, s.N);
  if (accumulate) db.randomize(3);
  auto expected = wide(db);
  const auto dy64 = wide(dy);
  linear_db(dy.data(), dy.ld, db.data(), s.M, s.N, accumulate);
  reference::linear_db(dy64.data(), dy64.ld, expected.data(), s.M, s.N, accumulate);
  EXPECT_LE(difference(db, expected), tolerance<Master<T>>())
      << s << " gap " << gap << " accumulate " << accumulate;
  EXPECT_TRUE(db.guards_stand()) << s;
}

TEST(Linear, AgreesWithTheReferenceInF32) {
  for (const Sizes& s : many_sizes()) {
    for (const RowPolicy policy : {RowPolicy::fast, RowPolicy::independent}) {
      expect_linear<float, float>(s, 0, true, policy);
      expect_linear<float, float>(s, 3, false, policy);
    }
  }
}

TEST(Linear, AgreesWithTheReferenceInF64) {
  for (const Sizes& s : many_sizes()) {
    expect_linear<double, double>(s, 0, false, RowPolicy::fast);
    expect_linear<double, double>(s, 3, true, RowPolicy::independent);
  }
}

TEST(Linear, AgreesWithTheReferenceInBf16) {
  for (const Sizes& s : many_sizes()) {
    expect_linear<bf16, bf16>(s, 3, true, RowPolicy::fast);
    expect_linear<bf16, float>(s, 0, false, RowPolicy::fast);
    expect_linear<bf16, bf16>(s, 0, true, RowPolicy::independent);
    expect_linear<bf16, float>(s, 1, false, RowPolicy::independent);
  }
}

TEST(LinearDx, AgreesWithTheReference) {
  for (const Sizes& s : many_sizes()) {
    expect_dx<float>(s, 0, false);
    expect_dx<float>(s, 3, true);
    expect_dx<double>(s, 0, true);
    expect_dx<double>(s, 3, false);
    expect_dx<bf16>(s, 1, false);
    expect_dx<bf16>(s, 0, true);
  }
}

TEST(LinearDw, AgreesWithTheReference) {
  for (const Sizes& s : many_sizes()) {
    expect_dw<float>(s, 0, false);
    expect_dw<float>(s, 3, true);
    expect_dw<double>(s, 0, true);
    expect_dw<double>(s, 3, false);
    expect_dw<bf16>(s, 1, false);
    expect_dw<bf16>(s, 0, true);
  }
}

TEST(LinearDb, AgreesWithTheReference) {
  for (const Sizes& s : many_sizes()) {
    expect_db<float>(s, 3, false);
    expect_db<float>(s, 0, true);
    expect_db<double>(s, 3, true);
    expect_db<bf16>(s, 1, false);
  }
}

// bf16 results of whole lines are written past the caches where they are large.
TEST(Linear, LargeResultsHaveTheBitsOfOthers) {
  const Sizes s{1100, 2048, 40};
  const auto x = Matrix<bf16>(s.M, s.K).randomize(1), w = Matrix<bf16>(s.N, s.K).randomize(2);
  const auto bias = Matrix<float>(1, s.N).randomize(3);
  const auto product = [&](bf16* y, int64_t ld) {
    linear(x.data(), x.ld, w.data(), w.ld, bias.data(), y, ld, s.M, s.N, s.K, RowPolicy::fast);
  };
  const auto size = static_cast<size_t>(s.M * s.N);
  const std::shared_ptr<void> lines = allocate_block(size * sizeof(bf16));  // starts with a line
  product(static_cast<bf16*>(lines.get()), s.N);
  Matrix<bf16> other(s.M, s.N, 5);
  product(other.data(), other.ld);
  for (int64_t row = 0; row < s.M; ++row) {
    ASSERT_EQ(std::memcmp(static_cast<bf16*>(lines.get()) + row * s.N,
                          other.data() + row * other.ld, static_cast<size_t>(s.N) * sizeof(bf16)),
              0)
        << "row " << row;
  }
}

// The result of each product with `threads` threads.
struct Results {
  Matrix<float> y, independent, dx, dw, db;
  Matrix<double> y64, dx64, dw64;
  Matrix<bf16> y16, dx16;
  Matrix<float> dw16;
};

Results results(const Sizes& s, int threads) {
  Runtime runtime({.threads = threads, .log = {}});
  const Runtime::Scope scope(runtime);
  const auto x = Matrix<float>(s.M, s.K).randomize(1), w = Matrix<float>(s.N, s.K).randomize(2);
  const auto dy = Matrix<float>(s.M, s.N).randomize(3);
  const auto x64 = wide(x), w64 = wide(w), dy64 = wide(dy);
  Results r{{s.M, s.N}, {s.M, s.N}, {s.M, s.K}, {s.N, s.K}, {1, s.N},  {s.M, s.N},
            {s.M, s.K}, {s.N, s.K}, {s.M, s.N}, {s.M, s.K}, {s.N, s.K}};
  linear(x.data(), x.ld, w.data(), w.ld, nullptr, r.y.data(), r.y.ld, s.M, s.N, s.K,
         RowPolicy::fast);
  linear(x.data(), x.ld, w.data(), w.ld, nullptr, r.independent.data(), r.y.ld, s.M, s.N, s.K,
         RowPolicy::independent);
  linear_dx(dy.data(), dy.ld, w.data(), w.ld, r.dx.data(), r.dx.ld, s.M, s.N, s.K, false);
  linear_dw(dy.data(), dy.ld, x.data(), x.ld, r.dw.data(), r.dw.ld, s.M, s.N, s.K, false);
  linear_db(dy.data(), dy.ld, r.db.data(), s.M, s.N, false);
  linear(x64.data(), x64.ld, w64.data(), w64.ld, nullptr, r.y64.data(), r.y64.ld, s.M, s.N, s.K,
         RowPolicy::fast);
  linear_dx(dy64.data(), dy64.ld, w64.data(), w64.ld, r.dx64.data(), r.dx64.ld, s.M, s.N, s.K,
            false);
  linear_dw(dy64.data(), dy64.ld, x64.data(), x64.ld, r.dw64.data(), r.dw64.ld, s.M, s.N, s.K,
            false);
  const auto x16 = Matrix<bf16>(s.M, s.K).randomize(1), w16 = Matrix<bf16>(s.N, s.K).randomize(2);
  const auto dy16 = Matrix<bf16>(s.M, s.N).randomize(3);
  linear(x16.data(), x16.ld, w16.data(), w16.ld, nullptr, r.y16.data(), r.y16.ld, s.M, s.N, s.K,
         RowPolicy::fast);
  linear_dx(dy16.data(), dy16.ld, w16.data(), w16.ld, r.dx16.data(), r.dx16.ld, s.M, s.N, s.K,
            false);
  linear_dw(dy16.data(), dy16.ld, x16.data(), x16.ld, r.dw16.data(), r.dw16.ld, s.M, s.N, s.K,
            false);
  return r;
}

TEST(Linear, AnyNumberOfThreadsGivesTheSameBits) {
  for (const Sizes& s :
       {Sizes{14, 700, 600}, Sizes{100, 600, 100}, Sizes{330, 300, 40}, Sizes{1100, 130, 64}}) {
    const Results one = results(s, 1);
    for (const int threads : {1, 2, 3}) {
      const Results many = results(s, threads);
      EXPECT_TRUE(same_bits(one.y, many.y)) << s << ", " << threads << " threads";
      EXPECT_TRUE(same_bits(one.independent, many.independent))
          << s << ", " << threads << " threads";
      EXPECT_TRUE(same_bits(one.dx, many.dx)) << s << ", " << threads << " threads";
      EXPECT_TRUE(same_bits(one.dw, many.dw)) << s << ", " << threads << " threads";
      EXPECT_TRUE(same_bits(one.db, many.db)) << s << ", " << threads << " threads";
      EXPECT_TRUE(same_bits(one.y64, many.y64)) << s << ", " << threads << " threads";
      EXPECT_TRUE(same_bits(one.dx64, many.dx64)) << s << ", " << threads << " threads";
      EXPECT_TRUE(same_bits(one.dw64, many.dw64)) << s << ", " << threads << " threads";
      EXPECT_TRUE(same_bits(one.y16, many.y16)) << s << ", " << threads << " threads";
      EXPECT_TRUE(same_bits(one.dx16, many.dx16)) << s << ", " << threads << " threads";
      EXPECT_TRUE(same_bits(one.dw16, many.dw16)) << s << ", " << threads << " threads";
    }
  }
}

// A row alone, or among others of any number, has the same bits when rows are to be independent.
template <class X, class Y>
void expect_independent_rows(int64_t N, int64_t K) {
  const int64_t rows = 300;
  auto x = Matrix<X>(rows, K).randomize(1);
  const auto w = Matrix<X>(N, K).randomize(2);
  x.data()[117 * x.ld] = std::numeric_limits<X>::infinity();  // not even on what a mate is
  const auto bias = Matrix<Master<X>>(1, N).randomize(3);
  const auto product = [&](int64_t from, int64_t count) {
    Matrix<Y> y(count, N);
    linear(x.data() + from * x.ld, x.ld, w.data(), w.ld, bias.data(), y.data(), y.ld, count, N, K,
           RowPolicy::independent);
    return y;
  };
  const Matrix<Y> whole = product(0, rows);
  const auto same_rows = [&](int64_t from, int64_t count) {
    const Matrix<Y> part = product(from, count);
    return std::memcmp(part.data(), whole.data() + from * whole.ld,
                       static_cast<size_t>(count * N) * sizeof(Y)) == 0;
  };
  for (int64_t row = 0; row < rows; row += 59) {
    EXPECT_TRUE(same_rows(row, 1)) << "row " << row << " alone, N " << N << " K " << K;
  }
  for (int64_t count = 2; count <= 34; ++count) {
    EXPECT_TRUE(same_rows(count * 7, count)) << count << " rows, N " << N << " K " << K;
  }
  for (const int64_t count : {63, 64, 65, 100, 128, 129, 255, 256, 257}) {
    EXPECT_TRUE(same_rows(11, count)) << count << " rows, N " << N << " K " << K;
  }
}

TEST(Linear, IndependentRowsDoNotDependOnTheOthers) {
  using Shape = std::pair<int64_t, int64_t>;
  for (const auto& [N, K] :
       {Shape{64, 64}, {33, 37}, {1, 300}, {300, 1}, {20, 1100}, {5, 700}, {260, 130}}) {
    expect_independent_rows<float, float>(N, K);
    expect_independent_rows<double, double>(N, K);
    expect_independent_rows<bf16, bf16>(N, K);
    expect_independent_rows<bf16, float>(N, K);
  }
}

}  // namespace
}  // namespace rapt::kernels
