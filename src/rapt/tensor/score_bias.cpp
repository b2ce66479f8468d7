#include "rapt/tensor/score_bias.h"

#include "rapt/base/check.h"

namespace rapt {

ScoreBias::ScoreBias(const Tensor& dense) {
  RAPT_CHECK(dense.defined() && is_float(dense.dtype()),
             "ScoreBias: expected a float tensor, got {}",
             dense.defined() ? dtype_name(dense.dtype()) : "none");
  RAPT_CHECK(
      dense.rank() >= 1 && dense.rank() <= 4 && dense.contiguous(),
      "ScoreBias: expected shape (Nk), (Tq, Tk), (B, Tq, Tk) or (B, H, Tq, Tk) without gaps, "
      "got {}",
      dense.shape().text());
  terms_.push_back(dense);
}

ScoreBias operator+(const ScoreBias& a, const ScoreBias& b) {
  ScoreBias sum = a;
  sum.terms_.insert(sum.terms_.end(), b.terms_.begin(), b.terms_.end());
  return sum;
}

}  // namespace rapt
