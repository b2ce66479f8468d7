// What acts on attention's scores before the softmax: a mask, and what is added to them.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "rapt/tensor/mask.h"
#include "rapt/tensor/tensor.h"

namespace rapt {

// What is added to the scores, differentiated where a tensor is recorded. Minus infinity hides a
// key. Sums are written with +.
class ScoreBias {
 public:
  ScoreBias() = default;  // nothing is added
  // A float tensor, contiguous: (Nk) over packed keys with any Rows; (Tq, Tk), (B, Tq, Tk) or
  // (B, H, Tq, Tk) where the sentences have equal lengths; B, H and Tq may be 1 and are shared
  // then. Throws Error for another type or rank; sizes are checked when it is used.
  ScoreBias(const Tensor& dense);  // implicit: a tensor is the plainest bias

  friend ScoreBias operator+(const ScoreBias& a, const ScoreBias& b);

  bool defined() const { return !terms_.empty(); }
  std::span<const Tensor> terms() const { return terms_; }

 private:
  std::vector<Tensor> terms_;
};

// Both together, as a layer hands them to its attention.
struct ScoreTerms {
  ScoreTerms() = default;
  ScoreTerms(Mask visible) : mask(std::move(visible)) {}  // implicit: most layers have a mask alone
  ScoreTerms(Mask visible, ScoreBias added) : mask(std::move(visible)), bias(std::move(added)) {}

  Mask mask;
  ScoreBias bias;
};

}  // namespace rapt
