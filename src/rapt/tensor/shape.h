// The sizes of a tensor's axes, at most six of them, and its element type.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "rapt/kernels/types.h"

namespace rapt {

enum class DType : uint8_t { f32, f64, bf16, i32, i64, boolean };

int64_t size_of(DType dtype);  // bytes of one element
std::string_view dtype_name(DType dtype);
bool is_float(DType dtype);
DType precise(DType dtype);  // f32 for bf16, else the same: of parameters, sums and losses

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct DTypeOf<bf16> {
  static constexpr DType value = DType::bf16;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType value = DType::i64;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::boolean;
};

class Shape {
 public:
  static constexpr int kMaxRank = 6;

  Shape() = default;
  // Throws Error for more than six axes, negative sizes, or more than 2^62 elements.
  Shape(std::initializer_list<int64_t> sizes)
      : Shape(std::span<const int64_t>(sizes.begin(), sizes.size())) {}
  explicit Shape(std::span<const int64_t> sizes);

  int rank() const { return rank_; }
  // The size of an axis; negative axes count from the last.
  int64_t operator[](int axis) const;
  int64_t numel() const { return numel_; }
  // The elements of one index of the first axis; 1 for a scalar.
  int64_t row_size() const;
  std::span<const int64_t> sizes() const { return {sizes_.data(), static_cast<size_t>(rank_)}; }
  std::string text() const;  // "(2, 3)"

  bool operator==(const Shape&) const = default;

 private:
  std::array<int64_t, kMaxRank> sizes_{};
  int rank_ = 0;
  int64_t numel_ = 1;
};

}  // namespace rapt
