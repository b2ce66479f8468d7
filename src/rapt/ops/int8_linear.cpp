#include "rapt/ops/int8_linear.h"

#include "rapt/base/check.h"
#include "rapt/base/profile.h"
#include "rapt/kernels/int8.h"
#include "rapt/ops/checks.h"

namespace rapt {

Tensor int8_linear(const Tensor& x, const Int8Matrix& w, int64_t begin, int64_t count,
                   const Tensor& b) {
  RAPT_CHECK(!x.recorded() && !b.recorded(),
             "int8_linear: expected a run without gradients, as the model is frozen for inference");
  RAPT_CHECK(x.rank() == 2 && x.dim(1) == w.in() && x.dtype() == DType::f32,
             "int8_linear: expected x (N, {}) of f32, got {} of {}", w.in(), x.shape().text(),
             dtype_name(x.dtype()));
  RAPT_CHECK(begin >= 0 && count >= 0 && begin <= w.out() - count,
             "int8_linear: expected outputs within {}, got {} from {}", w.out(), count, begin);
  RAPT_CHECK(!b.defined() || (b.shape() == Shape({count}) && b.dtype() == DType::f32),
             "int8_linear: expected a bias ({}) of f32, got {} of {}", count, b.shape().text(),
             dtype_name(b.dtype()));
  const int64_t M = x.dim(0);
  Tensor y = Tensor::empty({M, count}, DType::f32);
  const double rows = static_cast<double>(M), in = static_cast<double>(w.in()),
               out = static_cast<double>(count);
  const ProfileScope profile("int8 linear", 2 * rows * in * out, in * out + 4 * rows * (in + out));
  kernels::int8_linear(x.data<float>(), x.row_stride(), w.weight(), begin, count,
                       b.defined() ? b.data<float>() : nullptr, y.data<float>(), count, M);
  return y;
}

Tensor int8_rows(const Tensor& ids, const Int8Matrix& table) {
  RAPT_CHECK(ids.rank() == 1 && ids.dtype() == DType::i32,
             "embedding: expected ids (N) of i32, got {} of {}", ids.shape().text(),
             dtype_name(ids.dtype()));
  Tensor rows = Tensor::empty({ids.dim(0), table.in()}, DType::f32);
  for (int64_t i = 0; i < ids.dim(0); ++i) {
    const int32_t id = ids.data<int32_t>()[i];
    RAPT_CHECK(id >= 0 && id < table.out(), "embedding: expected ids below {}, got {} at {}",
               table.out(), id, i);
    kernels::int8_row(table.weight(), id, rows.data<float>() + i * table.in());
  }
  return rows;
}

}  // namespace rapt
