#include "rapt/tensor/shape.h"

#include <fmt/ranges.h>

#include "rapt/base/checked.h"

namespace rapt {

int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::bf16:
      return 2;
    case DType::boolean:
      return 1;
  }
  return 0;
}

std::string_view dtype_name(DType dtype) {
  constexpr std::string_view names[] = {"f32", "f64", "bf16", "i32", "i64", "bool"};
  return names[static_cast<int>(dtype)];
}

DType precise(DType dtype) { return dtype == DType::bf16 ? DType::f32 : dtype; }

bool is_float(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::bf16;
}

Shape::Shape(std::span<const int64_t> sizes) {
  RAPT_CHECK(sizes.size() <= kMaxRank, "Shape: expected at most {} axes, got {}", kMaxRank,
             sizes.size());
  rank_ = static_cast<int>(sizes.size());
  int64_t nonzero = 1;  // the product without zeros must fit too: row sizes are computed from it
  for (size_t i = 0; i < sizes.size(); ++i) {
    RAPT_CHECK(sizes[i] >= 0, "Shape: expected sizes of at least 0, got {} on axis {}", sizes[i],
               i);
    sizes_[i] = sizes[i];
    numel_ *= sizes[i] == 0 ? 0 : 1;
    if (sizes[i] > 0) nonzero = checked_mul(nonzero, sizes[i], "Shape");
  }
  RAPT_CHECK(nonzero <= int64_t{1} << 58, "Shape: {} has too many elements", text());
  numel_ *= nonzero;
}

int64_t Shape::operator[](int axis) const {
  RAPT_CHECK(axis >= -rank_ && axis < rank_, "Shape: expected an axis of {}, got {}", text(), axis);
  return sizes_[static_cast<size_t>(axis < 0 ? axis + rank_ : axis)];
}

int64_t Shape::row_size() const {
  int64_t size = 1;
  for (int i = 1; i < rank_; ++i) size *= sizes_[static_cast<size_t>(i)];
  return size;
}

std::string Shape::text() const { return fmt::format("({})", fmt::join(sizes(), ", ")); }

}  // namespace rapt
