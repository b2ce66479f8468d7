#include "rapt/base/checked.h"

#include <cstdint>

#include "rapt/base/limits.h"
#include "tests/testing/testing.h"

namespace rapt {
namespace {

using testing::error_of;

TEST(Checked, SumsAndProductsThatFit) {
  EXPECT_EQ(checked_add<int64_t>(INT64_MAX - 1, 1, "t"), INT64_MAX);
  EXPECT_EQ(checked_add<int64_t>(INT64_MIN + 1, -1, "t"), INT64_MIN);
  EXPECT_EQ(checked_mul<int64_t>(INT64_MAX, 1, "t"), INT64_MAX);
  EXPECT_EQ(checked_mul<uint64_t>(uint64_t{1} << 32, (uint64_t{1} << 32) - 1, "t"),
            ((uint64_t{1} << 32) - 1) << 32);
  EXPECT_EQ(checked_mul<int32_t>(46340, 46340, "t"), 46340 * 46340);
}

TEST(Checked, AnOverflowIsAnError) {
  EXPECT_EQ(error_of([] { checked_add<int64_t>(INT64_MAX, 1, "tensor"); }),
            "tensor: the sum 9223372036854775807 + 1 is too large");
  EXPECT_EQ(
      error_of([] { checked_mul<int64_t>((int64_t{1} << 42) + 1, int64_t{1} << 21, "tensor"); }),
      "tensor: the product 4398046511105 x 2097152 is too large");
  // The two sizes whose sum came round to a small number in llama.cpp (CVE-2026-27940).
  EXPECT_NE(error_of([] {
              checked_add<int64_t>(0x7FFFFFFFFFFFFFC0, 0x7FFFFFFFFFFFFFC0, "tensor");
            }).find("is too large"),
            std::string::npos);
  EXPECT_NE(error_of([] { checked_add<uint64_t>(UINT64_MAX, 1, "t"); }), "");
  EXPECT_NE(error_of([] { checked_mul<int32_t>(46341, 46341, "t"); }), "");
}

TEST(Checked, NarrowKeepsTheValueOrThrows) {
  EXPECT_EQ((narrow<int32_t, int64_t>(INT32_MAX, "t")), INT32_MAX);
  EXPECT_EQ((narrow<uint8_t, int>(255, "t")), 255);
  EXPECT_EQ(error_of([] { narrow<int32_t, int64_t>(int64_t{1} << 31, "ids"); }),
            "ids: 2147483648 is out of range");
  EXPECT_EQ(error_of([] { narrow<uint64_t, int>(-1, "ids"); }), "ids: -1 is out of range");
  EXPECT_NE(error_of([] { narrow<int64_t, uint64_t>(UINT64_MAX, "t"); }), "");
}

// Whatever the limits let pass can be multiplied without a check: a width by a width and a size of
// 8 bytes, a table of all positions or words.
TEST(Limits, LeaveRoomForTheirProducts) {
  const Limits limits;
  EXPECT_EQ(checked_mul(checked_mul(limits.width, limits.width, "t"), int64_t{8}, "t") >> 43, 1);
  EXPECT_GT(checked_mul(checked_mul(limits.vocabulary, limits.width, "t"), int64_t{8}, "t"), 0);
  EXPECT_GT(checked_mul(checked_mul(limits.positions, limits.width, "t"), int64_t{8}, "t"), 0);
  EXPECT_GT(checked_mul(limits.tensors, limits.line_bytes, "t"), 0);
}

TEST(Check, SaysWhatTheConditionWasFor) {
  const int got = 3;
  EXPECT_EQ(error_of([&] { RAPT_CHECK(got == 4, "linear: expected {} channels, got {}", 4, got); }),
            "linear: expected 4 channels, got 3");
  EXPECT_NE(error_of([&] { RAPT_ASSERT(got == 4); }).find("got == 4 does not hold"),
            std::string::npos);
}

TEST(Check, AGeneralFailureGetsAKindAndAPlace) {
  const auto kind_and_text = [](ErrorKind thrown, const std::string& where) {
    try {
      with_error_kind(ErrorKind::model, where, [&] { fail(thrown, "no shape"); });
    } catch (const Error& error) {
      return std::to_string(static_cast<int>(error.kind())) + " " + error.what();
    }
    return std::string();
  };
  EXPECT_EQ(kind_and_text(ErrorKind::failure, "model.safetensors"),
            "4 model.safetensors: no shape");
  EXPECT_EQ(kind_and_text(ErrorKind::failure, ""), "4 no shape");
  EXPECT_EQ(kind_and_text(ErrorKind::memory, "model.safetensors"), "7 no shape");
  EXPECT_EQ(with_error_kind(ErrorKind::model, "", [] { return 5; }), 5);
}

}  // namespace
}  // namespace rapt
