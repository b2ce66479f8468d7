// What opening and reading cost in resident memory.
#include <unistd.h>

#include <fstream>
#include <string>

#include "rapt/models/safetensors.h"
#include "tests/testing/testing.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RAPT_SKIP_MEMORY_FIGURES() GTEST_SKIP() << "memory figures mean nothing under sanitizers"
#else
#define RAPT_SKIP_MEMORY_FIGURES() (void)0
#endif

namespace rapt::models {
namespace {

constexpr int64_t kMiB = 1 << 20;

int64_t status_kib(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field + ":")) return std::stoll(line.substr(field.size() + 1));
  }
  throw Error("no " + field + " in /proc/self/status");
}

// By how many bytes the resident memory rises while `body` runs.
template <class Body>
int64_t peak_rise(Body&& body) {
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak starts anew
  const int64_t before = status_kib("VmRSS");
  body();
  return (status_kib("VmHWM") - before) * 1024;
}

class SafetensorsMemory : public ::testing::Test {
 protected:
  // Peak memory of refusing a file with this header.
  int64_t cost_of_refusal(const std::string& header) {
    const uint64_t length = header.size();
    {
      std::ofstream file(path_, std::ios::binary | std::ios::trunc);
      file.write(reinterpret_cast<const char*>(&length), sizeof length);
      file << header << "xxxx";
    }
    return peak_rise([&] {
      EXPECT_EQ(testing::error_of([&] { SafetensorsFile file(path_); }).size() < 4096, true);
    });
  }

  testing::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "model.safetensors";
};

TEST_F(SafetensorsMemory, R53_ClaimedSizesAreRefusedBeforeAllocation) {
  RAPT_SKIP_MEMORY_FIGURES();
  const uint64_t length = uint64_t{1} << 63;
  std::ofstream(path_, std::ios::binary).write(reinterpret_cast<const char*>(&length), 8) << "{}";
  EXPECT_LT(peak_rise([&] { testing::error_of([&] { SafetensorsFile file(path_); }); }), kMiB);
}

TEST_F(SafetensorsMemory, R53_LargeHeadersCostLittleMoreThanTheirBytes) {
  RAPT_SKIP_MEMORY_FIGURES();
  const int64_t size = 99'000'000, allowed = size + 64 * kMiB;
  const auto filled = [&](const std::string& head, const std::string& unit) {
    std::string header = head;
    while (std::cmp_less(header.size() + unit.size(), size)) header += unit;
    return header;
  };
  EXPECT_LT(cost_of_refusal(filled("", "[")), allowed);
  EXPECT_LT(cost_of_refusal(filled("{\"w\":", "[")), allowed);
  EXPECT_LT(cost_of_refusal(filled("{\"w\":{\"dtype\":\"F32\",\"shape\":[1", ",1")), allowed);
  EXPECT_LT(cost_of_refusal(filled("{\"w\":[", "{},")), allowed);
  EXPECT_LT(cost_of_refusal(filled("{\"", "w")), allowed);
  EXPECT_LT(cost_of_refusal(filled("{\"__metadata__\":{\"a\":\"", "w")), allowed);
  EXPECT_LT(cost_of_refusal(filled("{\"__metadata__\":{\"a\":\"", "\\u0041")), allowed);
  EXPECT_LT(cost_of_refusal(filled("{\"w\":", "1")), allowed);
}

TEST_F(SafetensorsMemory, ReadingATensorCostsOnePiece) {
  RAPT_SKIP_MEMORY_FIGURES();
  const int64_t numel = 32 * kMiB;
  const std::string header =
      R"({"w":{"dtype":"F16","shape":[33554432],"data_offsets":[0,67108864]}})";
  const uint64_t length = header.size();
  std::ofstream(path_, std::ios::binary).write(reinterpret_cast<const char*>(&length), 8) << header;
  std::filesystem::resize_file(path_, 8 + header.size() + static_cast<size_t>(2 * numel));
  std::vector<float> values(static_cast<size_t>(numel), 1.0f);
  EXPECT_LT(peak_rise([&] {
              const SafetensorsFile file(path_);
              file.read(file.at("w"), std::span(values));
            }),
            4 * kMiB);
  EXPECT_EQ(values.back(), 0.0f);
}

}  // namespace
}  // namespace rapt::models
