#include "rapt/tensor/mask.h"

#include <algorithm>

#include "rapt/base/check.h"

namespace rapt {

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
    kernels::KeepMatrix matrix;
    matrix.keep = keep.data<uint8_t>();
    if (keep.rank() == 1) {
      RAPT_CHECK(keep.dim(0) == keys.tokens(),
                 "{}: expected a key mask over {} packed keys, got {}", who, keys.tokens(),
                 keep.dim(0));
      matrix.offset_by_key_row = true;
    } else {
      const int64_t B = queries.sentences(), Tq = queries.longest(), Tk = keys.longest();
      RAPT_CHECK(queries.equal_lengths() && keys.equal_lengths(),
                 "{}: expected sentences of equal lengths for a mask of shape {}; over packed "
                 "sentences use causal, window "
                 "or a key mask (Nk)",
                 who, keep.shape().text());
      const Shape wanted = keep.rank() == 2   ? Shape{Tq, Tk}
                           : keep.rank() == 3 ? Shape{B, Tq, Tk}
                                              : Shape{B, H, Tq, Tk};
      RAPT_CHECK(B == 0 || keep.shape() == wanted, "{}: expected a mask of shape {}, got {}", who,
                 wanted.text(), keep.shape().text());
      matrix.stride_q = Tk;
      matrix.stride_h = keep.rank() == 4 ? Tq * Tk : 0;
      matrix.stride_b = keep.rank() == 4 ? H * Tq * Tk : keep.rank() == 3 ? Tq * Tk : 0;
    }
    view.matrices.push_back(matrix);
  }
  return view;
}

kernels::AttentionMask Mask::View::mask(const Mask& of) const {
  return {of.causal_, of.window_, matrices};
}

}  // namespace rapt
