#include "rapt/tensor/tensor.h"

#include <algorithm>
#include <cstring>

#include "rapt/base/memory.h"
#include "rapt/tensor/dispatch.h"

namespace rapt {

Tensor Tensor::empty(const Shape& shape, DType dtype) {
  Tensor x;
  x.block_ =
      allocate_block(static_cast<size_t>(std::max<int64_t>(1, shape.numel() * size_of(dtype))));
  x.data_ = x.block_.get();
  x.shape_ = shape;
  x.row_stride_ = shape.row_size();
  x.dtype_ = dtype;
  return x;
}

Tensor Tensor::zeros(const Shape& shape, DType dtype) {
  Tensor x = empty(shape, dtype);
  std::memset(x.data_, 0, static_cast<size_t>(shape.numel() * size_of(dtype)));
  return x;
}

Tensor Tensor::full(const Shape& shape, DType dtype, double value) {
  Tensor x = empty(shape, dtype);
  dispatch_any(dtype, [&](auto tag) {
    using T = decltype(tag);
    T element;
    if constexpr (std::is_same_v<T, bf16>) {
      element = bf16(static_cast<float>(value));
    } else {
      element = static_cast<T>(value);
    }
    std::fill_n(x.data<T>(), x.numel(), element);
  });
  return x;
}

template <class T>
Tensor Tensor::from(std::span<const T> values, const Shape& shape) {
  RAPT_CHECK(static_cast<int64_t>(values.size()) == shape.numel(),
             "Tensor::from: expected {} values for {}, got {}", shape.numel(), shape.text(),
             values.size());
  Tensor x = empty(shape, DTypeOf<T>::value);
  if (!values.empty()) std::memcpy(x.data_, values.data(), values.size_bytes());
  return x;
}

bool Tensor::contiguous() const {
  return rank() == 0 || row_stride_ == shape_.row_size() || dim(0) <= 1 || numel() == 0;
}

void* Tensor::checked_data(DType wanted) const {
  RAPT_CHECK(defined(), "Tensor: expected a tensor, got none");
  RAPT_CHECK(dtype_ == wanted, "Tensor: expected elements of {}, got {}", dtype_name(wanted),
             dtype_name(dtype_));
  return data_;
}

template <class T>
std::vector<T> Tensor::to_vector() const {
  const T* from = data<T>();
  const auto [rows, cols, ld] = as_matrix(*this);
  std::vector<T> values;
  values.reserve(static_cast<size_t>(numel()));
  for (int64_t i = 0; i < rows; ++i)
    values.insert(values.end(), from + i * ld, from + i * ld + cols);
  return values;
}

double Tensor::item() const {
  RAPT_CHECK(defined() && numel() == 1, "Tensor::item: expected one element, got shape {}",
             shape_.text());
  return dispatch_any(dtype_, [&](auto tag) {
    const auto value = *data<decltype(tag)>();
    if constexpr (std::is_same_v<decltype(tag), bf16>) {
      return static_cast<double>(static_cast<float>(value));
    } else {
      return static_cast<double>(value);
    }
  });
}

Tensor Tensor::rows(int64_t begin, int64_t count) const {
  RAPT_CHECK(rank() > 0, "Tensor::rows: expected at least one axis, got a scalar");
  RAPT_CHECK(begin >= 0 && count >= 0 && begin <= dim(0) - count,
             "Tensor::rows: expected a range within {} rows, got {} from {}", dim(0), count, begin);
  Tensor view = *this;
  std::vector<int64_t> sizes(shape_.sizes().begin(), shape_.sizes().end());
  sizes[0] = count;
  view.shape_ = Shape(sizes);
  view.data_ = static_cast<char*>(data_) + begin * row_stride_ * size_of(dtype_);
  view.offset_ += begin * row_stride_;
  return view;
}

Tensor Tensor::columns(int64_t begin, int64_t count) const {
  RAPT_CHECK(rank() == 2, "Tensor::columns: expected a matrix, got shape {}", shape_.text());
  RAPT_CHECK(begin >= 0 && count >= 0 && begin <= dim(1) - count,
             "Tensor::columns: expected a range within {} columns, got {} from {}", dim(1), count,
             begin);
  Tensor view = *this;
  view.shape_ = Shape{dim(0), count};
  view.data_ = static_cast<char*>(data_) + begin * size_of(dtype_);
  view.offset_ += begin;
  return view;
}

Tensor Tensor::reshape(const Shape& shape) const {
  RAPT_CHECK(shape.numel() == numel(), "Tensor::reshape: {} has {} elements, {} has {}",
             shape_.text(), numel(), shape.text(), shape.numel());
  Tensor view = *this;
  view.shape_ = shape;
  if (contiguous()) {
    view.row_stride_ = shape.row_size();
  } else {
    RAPT_CHECK(shape.rank() > 0 && shape[0] == dim(0),
               "Tensor::reshape: expected the first axis to stay {} (the rows have gaps), got {}",
               dim(0), shape.text());
  }
  return view;
}

Tensor Tensor::contiguous_copy() const {
  Tensor copy = empty(shape_, dtype_);
  const auto [rows, cols, ld] = as_matrix(*this);
  const int64_t width = size_of(dtype_);
  for (int64_t i = 0; i < rows && cols > 0; ++i) {
    std::memcpy(static_cast<char*>(copy.data_) + i * cols * width,
                static_cast<const char*>(data_) + i * ld * width,
                static_cast<size_t>(cols * width));
  }
  return copy;
}

Tensor Tensor::to(DType dtype) const {
  if (dtype == dtype_) return detach();
  const Tensor from = contiguous() ? *this : contiguous_copy();
  Tensor result = empty(shape_, dtype);
  dispatch_any(dtype_, [&](auto from_tag) {
    dispatch_any(dtype, [&](auto to_tag) {
      using From = decltype(from_tag);
      using To = decltype(to_tag);
      const From* source = from.data<From>();
      To* target = result.data<To>();
      for (int64_t i = 0; i < numel(); ++i) {
        if constexpr (std::is_same_v<To, bf16>) {
          target[i] = bf16(static_cast<float>(source[i]));
        } else if constexpr (std::is_same_v<From, bf16>) {
          target[i] = static_cast<To>(static_cast<float>(source[i]));
        } else {
          target[i] = static_cast<To>(source[i]);
        }
      }
    });
  });
  return result;
}

Tensor Tensor::detach() const {
  Tensor x = *this;
  x.node_.reset();
  x.offset_ = 0;
  return x;
}

Tensor empty_like(const Tensor& x) { return Tensor::empty(x.shape(), x.dtype()); }

template Tensor Tensor::from<float>(std::span<const float>, const Shape&);
template Tensor Tensor::from<double>(std::span<const double>, const Shape&);
template Tensor Tensor::from<bf16>(std::span<const bf16>, const Shape&);
template Tensor Tensor::from<int32_t>(std::span<const int32_t>, const Shape&);
template Tensor Tensor::from<int64_t>(std::span<const int64_t>, const Shape&);
template Tensor Tensor::from<uint8_t>(std::span<const uint8_t>, const Shape&);
template std::vector<float> Tensor::to_vector<float>() const;
template std::vector<double> Tensor::to_vector<double>() const;
template std::vector<bf16> Tensor::to_vector<bf16>() const;
template std::vector<int32_t> Tensor::to_vector<int32_t>() const;
template std::vector<int64_t> Tensor::to_vector<int64_t>() const;
template std::vector<uint8_t> Tensor::to_vector<uint8_t>() const;

}  // namespace rapt
