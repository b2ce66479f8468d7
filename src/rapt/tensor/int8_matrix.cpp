#include "rapt/tensor/int8_matrix.h"

#include <algorithm>
#include <vector>

#include "rapt/base/check.h"
#include "rapt/base/memory.h"
#include "rapt/kernels/int8.h"

namespace rapt {

Int8Matrix::Int8Matrix(int64_t out, int64_t in) : out_(out), in_(in) {
  RAPT_CHECK(in <= kernels::kInt8MostChannels,
             "int8: expected a matrix of at most {} input channels, got {}; keep this model in f32",
             kernels::kInt8MostChannels, in);
  packed_ = allocate_block(std::max<size_t>(kernels::int8_packed_bytes(out, in), 1));
  scales_ = Tensor::zeros({kernels::int8_outputs(out)}, DType::f32);
  sums_ = Tensor::zeros({kernels::int8_outputs(out)}, DType::i32);
}

Int8Matrix::Int8Matrix(const Tensor& w) : Int8Matrix(w.dim(0), w.dim(1)) {
  std::vector<int8_t> values(static_cast<size_t>(w.numel()));
  quantise(w, values, {scales_.data<float>(), static_cast<size_t>(out_)});
  pack(values.data());
}

Int8Matrix::Int8Matrix(std::span<const int8_t> values, std::span<const float> scales, int64_t in)
    : Int8Matrix(static_cast<int64_t>(scales.size()), in) {
  RAPT_CHECK(static_cast<int64_t>(values.size()) == out_ * in_,
             "int8: expected {} values of {} rows of {}, got {}", out_ * in_, out_, in_,
             values.size());
  std::copy(scales.begin(), scales.end(), scales_.data<float>());
  pack(values.data());
}

void Int8Matrix::pack(const int8_t* values) {
  kernels::int8_pack(values, out_, in_, static_cast<int8_t*>(packed_.get()), sums_.data<int32_t>());
}

kernels::Int8Weight Int8Matrix::weight() const {
  return {.N = out_,
          .K = in_,
          .packed = static_cast<const int8_t*>(packed_.get()),
          .scales = scales_.data<float>(),
          .sums = sums_.data<int32_t>()};
}

void quantise(const Tensor& w, std::span<int8_t> values, std::span<float> scales) {
  RAPT_CHECK(w.rank() == 2 && w.dtype() == DType::f32,
             "int8: expected a matrix of f32, got {} of {}", w.shape().text(),
             dtype_name(w.dtype()));
  RAPT_CHECK(static_cast<int64_t>(values.size()) == w.numel() &&
                 static_cast<int64_t>(scales.size()) == w.dim(0),
             "int8: expected {} values and {} scales, got {} and {}", w.numel(), w.dim(0),
             values.size(), scales.size());
  kernels::int8_quantise(w.data<float>(), w.row_stride(), w.dim(0), w.dim(1), values.data(),
                         scales.data());
}

}  // namespace rapt
