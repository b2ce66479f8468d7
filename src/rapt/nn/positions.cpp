#include "rapt/nn/positions.h"

#include <cmath>

#include "rapt/base/checked.h"
#include "rapt/tensor/dispatch.h"

namespace rapt::nn {

Tensor sinusoidal_positions(int64_t length, int64_t C, DType dtype) {
  Tensor table = Tensor::empty({length, C}, dtype);
  std::vector<double> rates(static_cast<size_t>(C));
  for (int64_t i = 0; i < C; ++i) {
    rates[static_cast<size_t>(i)] =
        std::exp(static_cast<double>(i - i % 2) * (-std::log(10000.0) / static_cast<double>(C)));
  }
  dispatch_float(dtype, "sinusoidal_positions", [&](auto tag) {
    using T = decltype(tag);
    T* value = table.data<T>();
    for (int64_t p = 0; p < length; ++p) {
      for (int64_t i = 0; i < C; ++i) {
        const double angle = static_cast<double>(p) * rates[static_cast<size_t>(i)];
        *value++ = static_cast<T>(i % 2 == 0 ? std::sin(angle) : std::cos(angle));
      }
    }
  });
  return table;
}

Tensor position_ids(const Rows& rows) {
  Tensor ids = Tensor::zeros({rows.tokens()}, DType::i32);
  for (const Segment& sentence : rows.segments()) {
    for (int64_t i = 0; i < sentence.count; ++i)
      ids.data<int32_t>()[sentence.row + i] =
          narrow<int32_t>(sentence.position + i, "position_ids: position");
  }
  return ids;
}

}  // namespace rapt::nn
