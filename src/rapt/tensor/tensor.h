// A tensor: a handle to a block of memory, a shape, a type, and a place on the tape.
//
// Row-major and contiguous but for the stride of its first axis, so that columns of a product are a
// view: the heads of a (N, 3C) projection are read, written and differentiated in place.
// Copies of a handle share the memory; the last one gives it back.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rapt/tensor/shape.h"

namespace rapt {

struct TapeNode;  // tensor/tape.h

class Tensor {
 public:
  Tensor() = default;  // no tensor: defined() is false

  static Tensor empty(const Shape& shape, DType dtype);  // the contents are whatever they are
  static Tensor zeros(const Shape& shape, DType dtype);
  static Tensor full(const Shape& shape, DType dtype, double value);
  // Throws Error if the number of values is not that of the shape.
  template <class T>
  static Tensor from(std::span<const T> values, const Shape& shape);
  template <class T>
  static Tensor from(const std::vector<T>& values, const Shape& shape) {
    return from(std::span<const T>(values), shape);
  }

  bool defined() const { return data_ != nullptr; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  int64_t dim(int axis) const { return shape_[axis]; }
  int64_t numel() const { return shape_.numel(); }
  DType dtype() const { return dtype_; }
  int64_t row_stride() const {
    return row_stride_;
  }  // elements from one index of the first axis to the next
  bool contiguous() const;

  // The first element. Throws Error if the type is not that of the tensor.
  template <class T>
  T* data() & {
    return static_cast<T*>(checked_data(DTypeOf<T>::value));
  }
  template <class T>
  const T* data() const& {
    return static_cast<const T*>(checked_data(DTypeOf<T>::value));
  }
  template <class T>
  T* data() && = delete;  // the memory would go with the temporary
  void* raw() & { return data_; }
  const void* raw() const& { return data_; }

  template <class T>
  std::vector<T> to_vector() const;  // a copy of the elements, without gaps
  double item() const;               // the only element; throws Error if there is not just one

  // Views: the same memory, and gradients that are the same part of the whole's gradient.
  Tensor rows(int64_t begin, int64_t count) const;     // of the first axis
  Tensor columns(int64_t begin, int64_t count) const;  // (N, C) -> (N, count)
  // The same elements in another shape: any for contiguous tensors, else the first axis must stay.
  Tensor reshape(const Shape& shape) const;

  Tensor contiguous_copy() const;  // never shares memory, not recorded
  Tensor to(DType dtype) const;  // converted copy (itself if it has the type already), not recorded

  bool recorded() const { return node_ != nullptr; }
  // Whether both have the same place on the tape.
  bool same_place(const Tensor& other) const {
    return node_ == other.node_ && offset_ == other.offset_;
  }
  // Whether both are the same elements of the same memory, seen alike, with the same place.
  bool same_view(const Tensor& other) const {
    return data_ == other.data_ && shape_ == other.shape_ && row_stride_ == other.row_stride_ &&
           same_place(other);
  }
  Tensor detach() const;  // the same memory without a place on the tape
  int64_t owners() const { return block_.use_count(); }  // handles that hold the memory
  bool shares_memory(const Tensor& other) const { return block_ == other.block_; }

 private:
  friend class TapeAccess;
  void* checked_data(DType wanted) const;

  std::shared_ptr<void> block_;
  void* data_ = nullptr;
  Shape shape_;
  int64_t row_stride_ = 1;
  DType dtype_ = DType::f32;
  std::shared_ptr<TapeNode> node_;  // the result that this is a view of
  int64_t offset_ = 0;              // the first element's place in that result
};

Tensor empty_like(const Tensor& x);  // the same shape and type, contiguous

extern template Tensor Tensor::from<float>(std::span<const float>, const Shape&);
extern template Tensor Tensor::from<double>(std::span<const double>, const Shape&);
extern template Tensor Tensor::from<bf16>(std::span<const bf16>, const Shape&);
extern template Tensor Tensor::from<int32_t>(std::span<const int32_t>, const Shape&);
extern template Tensor Tensor::from<int64_t>(std::span<const int64_t>, const Shape&);
extern template Tensor Tensor::from<uint8_t>(std::span<const uint8_t>, const Shape&);

}  // namespace rapt
