// What the tests share: real data, temporary folders, comparison of arrays.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "rapt/base/error.h"

namespace rapt::testing {

// The folder of real data, from RAPT_DATA_DIR; empty without it.
std::filesystem::path data_dir();

// The text of the rapt::Error that `body` throws; a test failure (and "") if it throws none.
template <class Body>
std::string error_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "expected a rapt::Error";
  return "";
}

// A folder that is removed with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// max |a - b| / max |b| (absolute where b is all zero); infinity where one of them is not finite.
template <class A, class B>
double relative_difference(std::span<const A> a, std::span<const B> b) {
  double difference = 0, largest = 0;
  if (a.size() != b.size()) return INFINITY;
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    if (x == y) continue;
    if (!std::isfinite(x) || !std::isfinite(y)) return INFINITY;
    difference = std::max(difference, std::abs(x - y));
    largest = std::max(largest, std::abs(y));
  }
  for (size_t i = 0; i < b.size(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(b[i])));
  return largest > 0 ? difference / largest : difference;
}

}  // namespace rapt::testing

// Skips the test where there is no real data.
#define RAPT_REQUIRE_DATA(folder)                                         \
  if (!std::filesystem::exists(::rapt::testing::data_dir() / (folder)) || \
      ::rapt::testing::data_dir().empty())                                \
  GTEST_SKIP() << "no real data: RAPT_DATA_DIR has no " << (folder)
