#include "rapt/tensor/mask.h"

#include <algorithm>

#include "rapt/base/check.h"

namespace rapt {

ScoreStrides score_strides(const char* who, const char* what, const Shape& shape,
                           const Rows& queries, const Rows& keys, int64_t H) {
  if (shape.rank() == 1) {
    RAPT_CHECK(shape[0] == keys.tokens(), "{}: expected a {} over {} packed keys, got {}", who,
               what, keys.tokens(), shape[0]);
    return {.by_key_row = true};
  }
  const int64_t B = queries.sentences(), Tq = queries.longest(), Tk = keys.longest();
  RAPT_CHECK(queries.equal_lengths() && keys.equal_lengths(),
             "{}: expected sentences of equal lengths for a {} of shape {}; over packed sentences "
             "use causal, window or one value a key (Nk)",
             who, what, shape.text());
  if (B == 0) return {};
  const Shape full = shape.rank() == 2   ? Shape{Tq, Tk}
                     : shape.rank() == 3 ? Shape{B, Tq, Tk}
                                         : Shape{B, H, Tq, Tk};
  bool fits = shape.rank() == full.rank() && shape[-1] == Tk;
  for (int axis = 0; axis < shape.rank() - 1; ++axis)
    fits = fits && (shape[axis] == full[axis] || shape[axis] == 1);
  RAPT_CHECK(fits, "{}: expected a {} of shape {} (all but the last axis may be 1), got {}", who,
             what, full.text(), shape.text());
  ScoreStrides strides;
  const int64_t rows = shape[-2], heads = shape.rank() == 4 ? shape[1] : 1;
  if (rows > 1) strides.q = Tk;
  if (heads > 1) strides.h = rows * Tk;
  if (shape.rank() > 2 && shape[0] > 1) strides.b = heads * rows * Tk;
  return strides;
}

Mask Mask::causal() {
  Mask mask;
  mask.causal_ = true;
  return mask;
}

Mask Mask::window(int64_t width) {
  RAPT_CHECK(width >= 0, "Mask::window: expected a width of at least 0, got {}", width);
  Mask mask;
  mask.window_ = width;
  return mask;
}

Mask Mask::keep(const Tensor& allowed) {
  RAPT_CHECK(allowed.defined() && allowed.dtype() == DType::boolean,
             "Mask: expected a bool tensor, got {}",
             allowed.defined() ? dtype_name(allowed.dtype()) : "none");
  RAPT_CHECK(allowed.rank() >= 1 && allowed.rank() <= 4,
             "Mask: expected shape (Nk), (Tq, Tk), (B, Tq, Tk) or (B, H, Tq, Tk), got {}",
             allowed.shape().text());
  Mask mask;
  mask.keep_.push_back(allowed.contiguous() ? allowed : allowed.contiguous_copy());
  return mask;
}

Mask Mask::drop(const Tensor& hidden) {
  Mask mask = keep(hidden);
  Tensor allowed = mask.keep_[0].contiguous_copy();
  uint8_t* value = allowed.data<uint8_t>();
  for (int64_t i = 0; i < allowed.numel(); ++i) value[i] = value[i] == 0;
  mask.keep_[0] = allowed;
  return mask;
}

Mask operator&(const Mask& a, const Mask& b) {
  Mask both = a;
  both.causal_ = a.causal_ || b.causal_;
  if (b.window_ >= 0) both.window_ = a.window_ < 0 ? b.window_ : std::min(a.window_, b.window_);
  both.keep_.insert(both.keep_.end(), b.keep_.begin(), b.keep_.end());
  return both;
}

Mask::View Mask::view(const char* who, const Rows& queries, const Rows& keys, int64_t H) const {
  View view;
  for (const Tensor& keep : keep_) {
    const ScoreStrides at = score_strides(who, "mask", keep.shape(), queries, keys, H);
    view.matrices.push_back({keep.data<uint8_t>(), at.b, at.h, at.q, at.by_key_row});
  }
  return view;
}

kernels::AttentionMask Mask::View::mask(const Mask& of) const {
  return {of.causal_, of.window_, matrices};
}

}  // namespace rapt
