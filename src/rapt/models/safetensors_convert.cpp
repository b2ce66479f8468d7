#include "rapt/models/safetensors_convert.h"

#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

#include "rapt/base/check.h"

namespace rapt::models {
namespace {

// IEEE half precision, as its bits.
struct Half {
  uint16_t bits;
};

// A bool in a file: one byte, 0 or 1.
struct Bool {
  uint8_t byte;
};

float widen(Half half) {
  const uint32_t sign = static_cast<uint32_t>(half.bits & 0x8000u) << 16;
  const uint32_t exponent = half.bits >> 10 & 0x1Fu;
  const uint32_t fraction = half.bits & 0x3FFu;
  if (exponent == 0) {  // zero and subnormal numbers: multiples of 2^-24
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  const uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

float widen(bf16 value) { return static_cast<float>(value); }
float widen(float value) { return value; }
double widen(double value) { return value; }

// A double as a bf16, rounded once: the float between is rounded to odd, so that it keeps the side
// on which the double lies.
bf16 narrow_to_bf16(double value) {
  float odd = static_cast<float>(value);
  if (static_cast<double>(odd) != value && value - value == 0 && odd - odd == 0) {
    const uint32_t bits = std::bit_cast<uint32_t>(odd);
    const bool away = (odd < 0 ? -static_cast<double>(odd) : static_cast<double>(odd)) >
                      (value < 0 ? -value : value);
    odd = std::bit_cast<float>((away ? bits - 1 : bits) | 1u);
  }
  return bf16(odd);
}

template <class From, class To>
bool convert_one(From from, To& to) {
  if constexpr (std::is_same_v<From, Bool>) {
    to = from.byte;
    return from.byte <= 1;
  } else if constexpr (std::is_integral_v<From>) {
    to = static_cast<To>(+from);  // promoted: an int8 is a number, not a character
    return std::in_range<To>(from);
  } else if constexpr (std::is_same_v<From, double> && std::is_same_v<To, bf16>) {
    to = narrow_to_bf16(from);
    return true;
  } else {
    to = static_cast<To>(widen(from));
    return true;
  }
}

template <class From, class To>
int64_t convert(const std::byte* from, void* to, int64_t count) {
  auto* out = static_cast<To*>(to);
  for (int64_t i = 0; i < count; ++i) {
    From element;
    std::memcpy(&element, from + i * static_cast<int64_t>(sizeof(From)), sizeof(From));
    if (!convert_one(element, out[i])) return i;
  }
  return count;
}

template <class From>
Conversion from_float(DType to) {
  switch (to) {
    case DType::f32:
      return convert<From, float>;
    case DType::f64:
      return convert<From, double>;
    case DType::bf16:
      return convert<From, bf16>;
    default:
      return nullptr;
  }
}

template <class From>
Conversion from_integer(DType to) {
  if (to == DType::i32) return convert<From, int32_t>;
  if (to == DType::i64) return convert<From, int64_t>;
  return nullptr;
}

}  // namespace

Conversion conversion(FileType from, DType to) {
  switch (from) {
    case FileType::f64:
      return from_float<double>(to);
    case FileType::f32:
      return from_float<float>(to);
    case FileType::f16:
      return from_float<Half>(to);
    case FileType::bf16:
      return from_float<bf16>(to);
    case FileType::i64:
      return from_integer<int64_t>(to);
    case FileType::i32:
      return from_integer<int32_t>(to);
    case FileType::i16:
      return from_integer<int16_t>(to);
    case FileType::i8:
      return from_integer<int8_t>(to);
    case FileType::u64:
      return from_integer<uint64_t>(to);
    case FileType::u32:
      return from_integer<uint32_t>(to);
    case FileType::u16:
      return from_integer<uint16_t>(to);
    case FileType::u8:
      return from_integer<uint8_t>(to);
    case FileType::boolean:
      return to == DType::boolean ? convert<Bool, uint8_t> : nullptr;
    case FileType::f8_e4m3:
    case FileType::f8_e5m2:
      return nullptr;
  }
  return nullptr;
}

FileType file_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return FileType::f32;
    case DType::f64:
      return FileType::f64;
    case DType::bf16:
      return FileType::bf16;
    case DType::i32:
      return FileType::i32;
    case DType::i64:
      return FileType::i64;
    case DType::boolean:
      return FileType::boolean;
  }
  fail(ErrorKind::failure, "safetensors: unknown element type");
}

}  // namespace rapt::models
