// Matrices for the tests of kernels that go row by row: strided and misaligned ones, with a guard
// around every row, in all lengths that end a vector in another way.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "rapt/base/random.h"
#include "rapt/base/runtime.h"
#include "rapt/kernels/types.h"

namespace rapt::testing {

struct Layout {
  int64_t rows = 0, cols = 0;
  int64_t gap = 0;     // elements between the rows
  int64_t offset = 0;  // elements before the first
};

// Rows of 0 to 70 and some more elements, contiguous and not.
inline std::vector<Layout> layouts() {
  std::vector<Layout> all;
  for (int64_t cols = 0; cols <= 70; ++cols) {
    all.push_back({3, cols, 0, 0});
    all.push_back({2, cols, 5, 1});
  }
  for (const int64_t cols : {127, 128, 129, 255, 512, 1000}) {
    all.push_back({5, cols, 0, 0});
    all.push_back({4, cols, 3, 7});
  }
  all.push_back({0, 5, 0, 0});
  all.push_back({1, 40000, 0, 0});
  all.push_back({300, 130, 0, 3});
  all.push_back({300, 130, 1, 0});
  return all;
}

template <class T>
class Matrix {
 public:
  // Uniform numbers in [low, high).
  Matrix(Layout layout, uint64_t seed, double low = -3, double high = 3)
      : layout_(layout), ld_(layout.cols + layout.gap) {
    values_.assign(static_cast<size_t>(layout.offset + layout.rows * ld_ + 16), guard());
    Rng rng(seed);
    for (int64_t i = 0; i < layout.rows; ++i) {
      for (int64_t j = 0; j < layout.cols; ++j) {
        (*this)(i, j) = static_cast<T>(static_cast<float>(rng.uniform(low, high)));
      }
    }
  }

  // The same numbers, contiguous.
  template <class From>
  explicit Matrix(const Matrix<From>& other) : Matrix({other.rows(), other.cols(), 0, 0}, 0) {
    for (int64_t i = 0; i < rows(); ++i) {
      for (int64_t j = 0; j < cols(); ++j) (*this)(i, j) = static_cast<T>(other(i, j));
    }
  }
  Matrix(const Matrix&) = default;
  Matrix& operator=(const Matrix&) = default;

  T* data() { return values_.data() + layout_.offset; }
  const T* data() const { return values_.data() + layout_.offset; }
  int64_t rows() const { return layout_.rows; }
  int64_t cols() const { return layout_.cols; }
  int64_t ld() const { return ld_; }
  T& operator()(int64_t i, int64_t j) { return data()[i * ld_ + j]; }
  const T& operator()(int64_t i, int64_t j) const { return data()[i * ld_ + j]; }

  bool guard_is_intact() const {
    for (int64_t k = 0; k < static_cast<int64_t>(values_.size()); ++k) {
      const int64_t at = k - layout_.offset;
      const bool inside = at >= 0 && at < layout_.rows * ld_ && at % ld_ < layout_.cols;
      if (!inside && values_[static_cast<size_t>(k)] != guard()) return false;
    }
    return true;
  }

 private:
  static T guard() { return T(-7654321); }

  Layout layout_;
  int64_t ld_;
  std::vector<T> values_;
};

template <class T>
bool same_bits(const Matrix<T>& a, const Matrix<T>& b) {
  for (int64_t i = 0; i < a.rows(); ++i) {
    if (std::memcmp(&a(i, 0), &b(i, 0), static_cast<size_t>(a.cols()) * sizeof(T)) != 0) {
      return false;
    }
  }
  return a.rows() == b.rows() && a.cols() == b.cols();
}

// max |a - b| / max |b| over the matrix; infinity where one is not finite and they differ.
template <class A, class B>
double difference(const Matrix<A>& a, const Matrix<B>& b) {
  double worst = 0, largest = 0;
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t j = 0; j < a.cols(); ++j) {
      const double x = static_cast<double>(a(i, j)), y = static_cast<double>(b(i, j));
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      if (!std::isfinite(x) || !std::isfinite(y)) return INFINITY;
      worst = std::max(worst, std::abs(x - y));
    }
  }
  for (int64_t i = 0; i < b.rows(); ++i) {
    for (int64_t j = 0; j < b.cols(); ++j) {
      const double y = std::abs(static_cast<double>(b(i, j)));
      if (std::isfinite(y)) largest = std::max(largest, y);
    }
  }
  return largest > 0 ? worst / largest : worst;
}

// Ids of rows as a packed batch has them.
inline std::vector<kernels::RowId> row_ids(int64_t rows) {
  std::vector<kernels::RowId> ids;
  for (int64_t i = 0; i < rows; ++i) {
    ids.push_back({mix_bits(static_cast<uint64_t>(i / 3)), static_cast<uint32_t>(i % 3)});
  }
  return ids;
}

// The results of `body`, which returns a vector, with 1, 2 and 3 threads: true if all are the same.
template <class Body>
bool same_for_any_threads(const Body& body) {
  std::vector<decltype(body())> results;
  for (const int threads : {1, 2, 3}) {
    Runtime runtime({.threads = threads});
    const Runtime::Scope scope(runtime);
    results.push_back(body());
  }
  const auto same = [&](const auto& a, const auto& b) {
    return a.size() == b.size() &&
           std::memcmp(a.data(), b.data(), a.size() * sizeof(a.front())) == 0;
  };
  return same(results[0], results[1]) && same(results[0], results[2]);
}

}  // namespace rapt::testing
