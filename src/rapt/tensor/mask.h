// Which keys a query may see. A type, not a polarity: keep() and drop() say what their tensor
// means, and masks are combined with &.
#pragma once

#include <cstdint>
#include <vector>

#include "rapt/kernels/attention.h"
#include "rapt/tensor/rows.h"
#include "rapt/tensor/tensor.h"

namespace rapt {

// Where the elements of a tensor over scores lie: (b, h, i, j) at b * b + h * h + i * q + j, and
// with `by_key_row` at the row of key j in its packed tensor. Strides of 0 are shared.
struct ScoreStrides {
  int64_t b = 0, h = 0, q = 0;
  bool by_key_row = false;
};
// Those of a contiguous tensor that acts on the scores of these sentences and H heads: (Nk) over
// packed keys; (Tq, Tk), (B, Tq, Tk) or (B, H, Tq, Tk) where the sentences have equal lengths; B, H
// and Tq may be 1 and are shared then. Throws Error (as `who`, about a `what`) where it does not
// fit.
ScoreStrides score_strides(const char* who, const char* what, const Shape& shape,
                           const Rows& queries, const Rows& keys, int64_t H);

class Mask {
 public:
  Mask() = default;  // everything may be seen

  // No query sees a later position: key position <= query position.
  static Mask causal();
  // Only keys at most `width` positions away, on both sides. Throws Error if width < 0.
  static Mask window(int64_t width);
  // A bool tensor: true keeps (or drops). Shapes: (Nk) over packed keys with any Rows; (Tq, Tk),
  // (B, Tq, Tk) or (B, H, Tq, Tk) where the sentences have equal lengths; B, H and Tq may be 1 and
  // are shared then. Sizes are checked when it is used.
  static Mask keep(const Tensor& allowed);
  static Mask drop(const Tensor& hidden);

  // Both must allow a key.
  friend Mask operator&(const Mask& a, const Mask& b);

  // The mask in the kernels' words, for these sentences and H heads; throws Error (as `who`) where
  // a matrix does not fit. The result points into this mask.
  struct View {
    std::vector<kernels::KeepMatrix> matrices;
    kernels::AttentionMask mask(const Mask& of) const;
  };
  View view(const char* who, const Rows& queries, const Rows& keys, int64_t H) const;

 private:
  bool causal_ = false;
  int64_t window_ = -1;
  std::vector<Tensor> keep_;
};

}  // namespace rapt
