// What is written is read; types convert exactly or not at all.
#include <cmath>
#include <fstream>
#include <limits>
#include <random>

#include "rapt/base/file.h"
#include "rapt/models/safetensors.h"
#include "tests/testing/testing.h"

namespace rapt::models {
namespace {

using testing::error_of;
using testing::TemporaryFolder;

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

template <class T>
TensorSource source(const std::string& name, FileType type, const std::vector<T>& values) {
  return {name, type, {static_cast<int64_t>(values.size())}, [values](const ByteSink& sink) {
            sink(std::as_bytes(std::span(values)));
          }};
}

class SafetensorsValues : public ::testing::Test {
 protected:
  // The values of the only tensor of a file, read as To.
  template <class To, class From>
  std::vector<To> converted(FileType type, const std::vector<From>& values) {
    write_safetensors(path_, std::vector{source("w", type, values)});
    const SafetensorsFile file(path_);
    std::vector<To> read(values.size());
    file.read(file.at("w"), std::span(read));
    return read;
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "x.safetensors";
};

TEST_F(SafetensorsValues, FilesKeepOrderNamesShapesAndMetadata) {
  const Tensor a = Tensor::from(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor b = Tensor::from(std::vector<uint8_t>{1, 0, 1}, {3});
  const Tensor c = Tensor::from(std::vector<double>{0.1}, {});
  const Tensor d = Tensor::from(std::vector<int64_t>{-7}, {1});
  const Tensor e = Tensor::empty({0, 4}, DType::bf16);
  const Metadata metadata = {{"format", "pt"}, {"\u6211 \"q\"\n", "\\"}};
  write_safetensors(
      path_,
      std::vector{source_of("z", a), source_of("b.\u6211\"", b), source_of("c", c),
                  source_of("d", d), source_of("e", e), source_of("columns", a.columns(1, 2))},
      metadata);
  const SafetensorsFile file(path_);
  EXPECT_EQ(file.metadata(), metadata);
  ASSERT_EQ(file.tensors().size(), 6u);
  EXPECT_EQ(file.tensors()[0].name, "z");
  EXPECT_EQ(file.tensors()[0].offset % 8, 0);
  EXPECT_EQ(file.tensors()[5].name, "columns");
  EXPECT_EQ(file.at("z").shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(file.load(file.at("z"), DType::f32).to_vector<float>(), a.to_vector<float>());
  EXPECT_EQ(file.load(file.at("b.\u6211\""), DType::boolean).to_vector<uint8_t>(),
            b.to_vector<uint8_t>());
  EXPECT_EQ(file.load(file.at("c"), DType::f64).item(), 0.1);
  EXPECT_EQ(file.load(file.at("d"), DType::i64).item(), -7);
  EXPECT_EQ(file.load(file.at("e"), DType::bf16).shape(), (Shape{0, 4}));
  EXPECT_EQ(file.load(file.at("columns"), DType::f32).to_vector<float>(),
            (std::vector<float>{2, 3, 5, 6}));
  EXPECT_EQ(file.find("y"), nullptr);
  EXPECT_TRUE(holds(error_of([&] { file.at("y"); }), "there is no tensor y"));
}

// The file as the format's description has it, byte by byte.
TEST_F(SafetensorsValues, TheBytesAreThoseOfTheFormat) {
  write_safetensors(path_, std::vector{source<uint16_t>("w", FileType::f16, {0x3C00})});
  const std::string header = R"({"w":{"dtype":"F16","shape":[1],"data_offsets":[0,2]}})";
  std::string expected("\x38\0\0\0\0\0\0\0", 8);
  expected += header + std::string(0x38 - header.size(), ' ') + std::string("\x00\x3c", 2);
  EXPECT_EQ(read_file(path_), expected);
}

TEST_F(SafetensorsValues, HalvesAreWidenedExactly) {
  std::vector<uint16_t> halves;
  for (int bits = 0; bits < 65536; ++bits) halves.push_back(static_cast<uint16_t>(bits));
  const auto floats = converted<float>(FileType::f16, halves);
  const auto doubles = converted<double>(FileType::f16, halves);
  for (size_t i = 0; i < halves.size(); ++i) {
    const int exponent = static_cast<int>(i >> 10 & 31), fraction = static_cast<int>(i & 1023);
    const double sign = i >= 32768 ? -1 : 1;
    if (exponent == 31 && fraction != 0) {
      EXPECT_TRUE(std::isnan(floats[i]) && std::isnan(doubles[i]));
      continue;
    }
    const double value = exponent == 31  ? std::numeric_limits<double>::infinity()
                         : exponent == 0 ? std::ldexp(fraction, -24)
                                         : std::ldexp(1024 + fraction, exponent - 25);
    EXPECT_EQ(doubles[i], sign * value);
    EXPECT_EQ(floats[i], static_cast<float>(sign * value));
    EXPECT_EQ(std::signbit(floats[i]), sign < 0);
  }
}

TEST_F(SafetensorsValues, FloatsConvertAmongEachOther) {
  const std::vector<double> values = {0, -1.5, 0.1, 1e-40, 65504, -0.0};
  std::vector<float> narrow;
  std::vector<bf16> narrower;
  for (const double value : values) {
    narrow.push_back(static_cast<float>(value));
    narrower.push_back(bf16(static_cast<float>(value)));
  }
  EXPECT_EQ(converted<double>(FileType::f64, values), values);
  EXPECT_EQ(converted<float>(FileType::f64, values), narrow);
  EXPECT_EQ(converted<float>(FileType::f32, narrow), narrow);
  const auto widened = converted<float>(FileType::bf16, narrower);
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(widened[i], static_cast<float>(narrower[i]));
  const auto rounded = converted<bf16>(FileType::f32, narrow);
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(rounded[i].bits, narrower[i].bits);
}

// 1 + 2^-8 lies halfway between two bf16 numbers; a hair above it must round up, though the float
// in between is the halfway point itself.
TEST_F(SafetensorsValues, DoublesRoundOnceToBf16) {
  const std::vector<double> values = {1 + 0x1p-8 + 0x1p-40,    1 + 0x1p-8, 1 + 0x1p-8 - 0x1p-40,
                                      -(1 + 0x1p-8 + 0x1p-40), INFINITY,   NAN};
  const auto rounded = converted<bf16>(FileType::f64, values);
  const uint16_t expected[] = {0x3F81, 0x3F80, 0x3F80, 0xBF81, 0x7F80};
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(rounded[i].bits, expected[i]) << i;
  EXPECT_TRUE(std::isnan(static_cast<float>(rounded[5])));
}

TEST_F(SafetensorsValues, IntegersWidenAndNarrowOnlyWhereTheyFit) {
  EXPECT_EQ((converted<int64_t>(FileType::i32, std::vector<int32_t>{-5, 7})),
            (std::vector<int64_t>{-5, 7}));
  EXPECT_EQ((converted<int32_t>(FileType::i64, std::vector<int64_t>{-5, 7})),
            (std::vector<int32_t>{-5, 7}));
  EXPECT_EQ((converted<int32_t>(FileType::i16, std::vector<int16_t>{-5})),
            (std::vector<int32_t>{-5}));
  EXPECT_EQ((converted<int32_t>(FileType::i8, std::vector<int8_t>{-5})),
            (std::vector<int32_t>{-5}));
  EXPECT_EQ((converted<int32_t>(FileType::u8, std::vector<uint8_t>{250})),
            (std::vector<int32_t>{250}));
  EXPECT_EQ((converted<int64_t>(FileType::u32, std::vector<uint32_t>{4000000000u})),
            (std::vector<int64_t>{4000000000}));
  EXPECT_TRUE(holds(error_of([&] {
                      converted<int32_t>(FileType::i64, std::vector<int64_t>{1, int64_t{1} << 31});
                    }),
                    "element 1 is out of range for i32"));
  EXPECT_TRUE(
      holds(error_of([&] { converted<int64_t>(FileType::u64, std::vector<uint64_t>{UINT64_MAX}); }),
            "element 0 is out of range for i64"));
}

TEST_F(SafetensorsValues, OtherConversionsAreRefused) {
  EXPECT_TRUE(holds(error_of([&] { converted<float>(FileType::i32, std::vector<int32_t>{1}); }),
                    "cannot read I32 as f32"));
  EXPECT_TRUE(holds(error_of([&] { converted<int32_t>(FileType::f32, std::vector<float>{1}); }),
                    "cannot read F32 as i32"));
  EXPECT_TRUE(holds(error_of([&] { converted<float>(FileType::f8_e4m3, std::vector<uint8_t>{1}); }),
                    "cannot read F8_E4M3"));
  EXPECT_TRUE(holds(error_of([&] {
                      converted<uint8_t>(FileType::boolean, std::vector<uint8_t>{0, 2});
                    }),
                    "element 1 is out of range"));
  const SafetensorsFile file(path_);
  std::vector<uint8_t> wrong(3);
  EXPECT_TRUE(holds(error_of([&] { file.read(file.at("w"), std::span(wrong)); }),
                    "expected room for 2 elements, got 3"));
}

// Longer than the pieces that are read at once, and no multiple of them.
TEST_F(SafetensorsValues, LongTensorsAreReadInPieces) {
  std::vector<double> values(300'001);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  const auto read = converted<float>(FileType::f64, values);
  for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(read[i], static_cast<float>(i));
}

TEST_F(SafetensorsValues, BadSourcesAreRefusedAndNothingIsLeft) {
  const auto good = source<float>("w", FileType::f32, {1});
  error_of([&] { write_safetensors(path_, std::vector{good, good}); });
  error_of([&] { write_safetensors(path_, std::vector{source<float>("", FileType::f32, {1})}); });
  error_of([&] {
    write_safetensors(path_, std::vector{source<float>("__metadata__", FileType::f32, {1})});
  });
  error_of(
      [&] { write_safetensors(path_, std::vector{source<float>("\xff", FileType::f32, {1})}); });
  error_of([&] { write_safetensors(path_, std::vector{source<float>("w", FileType::f64, {1})}); });
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(SafetensorsValues, FullDiskLeavesTheOldFile) {
  write_safetensors(path_, std::vector{source<float>("old", FileType::f32, {1})});
  for (const std::string failing : {"write", "fsync", "exchange"}) {
    set_file_fault([&](std::string_view operation, const std::filesystem::path&) {
      return operation == failing ? ENOSPC : 0;
    });
    error_of(
        [&] { write_safetensors(path_, std::vector{source<float>("new", FileType::f32, {2})}); });
    set_file_fault(nullptr);
    EXPECT_NE(SafetensorsFile(path_).find("old"), nullptr);
  }
}

}  // namespace
}  // namespace rapt::models
