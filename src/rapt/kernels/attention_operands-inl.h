// Operands of attention's products, packed from rows, per target.
#if defined(RAPT_KERNELS_ATTENTION_OPERANDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_KERNELS_ATTENTION_OPERANDS_INL_H_
#undef RAPT_KERNELS_ATTENTION_OPERANDS_INL_H_
#else
#define RAPT_KERNELS_ATTENTION_OPERANDS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "rapt/kernels/attention_sizes.h"
#include "rapt/kernels/small_matmul-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

// Vectors that each take 128-bit block i from rows[i * step].
template <class D, class T>
HWY_INLINE hn::Vec<D> load_blocks(D d, const T* const* rows, size_t step, int64_t column) {
  if constexpr (hn::MaxLanes(d) * sizeof(T) == 16) {
    return hn::LoadU(d, rows[0] + column);
  } else {
    const hn::Half<D> half;
    const size_t blocks = hn::MaxLanes(half) * sizeof(T) / 16;
    return hn::Combine(d, load_blocks(half, rows + blocks * step, step, column),
                       load_blocks(half, rows, step, column));
  }
}

#endif

// Transposes a vector's worth of rows: to[c * stride + i] = factor * rows[i][c].
template <class T>
HWY_INLINE void transpose_rows(const T* const* rows, int64_t width, T factor, T* HWY_RESTRICT to,
                               int64_t stride) {
  int64_t c = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<T> d;
  const auto scale = hn::Set(d, factor);
  constexpr int64_t kBlock = 16 / sizeof(T);
  for (; c + kBlock <= width; c += kBlock) {
    T* out = to + c * stride;
    const auto a0 = load_blocks(d, rows, kBlock, c);
    const auto a1 = load_blocks(d, rows + 1, kBlock, c);
    if constexpr (kBlock == 2) {
      hn::StoreU(hn::Mul(scale, hn::InterleaveLower(d, a0, a1)), d, out);
      hn::StoreU(hn::Mul(scale, hn::InterleaveUpper(d, a0, a1)), d, out + stride);
    } else {
      const auto a2 = load_blocks(d, rows + 2, kBlock, c);
      const auto a3 = load_blocks(d, rows + 3, kBlock, c);
      const auto even_low = hn::InterleaveLower(d, a0, a2),
                 even_high = hn::InterleaveUpper(d, a0, a2);
      const auto odd_low = hn::InterleaveLower(d, a1, a3),
                 odd_high = hn::InterleaveUpper(d, a1, a3);
      hn::StoreU(hn::Mul(scale, hn::InterleaveLower(d, even_low, odd_low)), d, out);
      hn::StoreU(hn::Mul(scale, hn::InterleaveUpper(d, even_low, odd_low)), d, out + stride);
      hn::StoreU(hn::Mul(scale, hn::InterleaveLower(d, even_high, odd_high)), d, out + 2 * stride);
      hn::StoreU(hn::Mul(scale, hn::InterleaveUpper(d, even_high, odd_high)), d, out + 3 * stride);
    }
  }
#endif
  for (; c < width; ++c) {
    for (int64_t i = 0; i < kLanes<T>; ++i) to[c * stride + i] = factor * rows[i][c];
  }
}

// The transpose of `count` rows of `from` (ld apart, `width` wide), times factor, as the right side
// of a product: panels of kPanel rows. Past the last row that row is repeated.
template <class T>
Right<T> pack_transposed(const T* from, int64_t ld, int64_t count, int64_t width, T factor, T* to) {
  const Right<T> packed{to, kPanel<T>, kPanel<T> * width};
  const T* rows[kLanes<T>];
  for (int64_t first = 0; first < count; first += kLanes<T>) {
    for (int64_t i = 0; i < kLanes<T>; ++i) rows[i] = from + std::min(first + i, count - 1) * ld;
    T* panel = to + first / kPanel<T> * packed.panel + first % kPanel<T>;
    transpose_rows(rows, width, factor, panel, packed.stride);
  }
  return packed;
}

// The rows themselves as the right side of a product: in place if whole vectors can be read, else
// (or if `copy` says that it pays) a copy, padded with zeros.
template <class T>
Right<T> pack_rows(const T* from, int64_t ld, int64_t rows, int64_t width, bool copy, T* to) {
  if (width % kLanes<T> == 0 && !copy) return {from, ld, kPanel<T>};
  const int64_t padded = next_multiple(width, kLanes<T>);
  for (int64_t i = 0; i < rows; ++i) {
    std::memcpy(to + i * padded, from + i * ld, static_cast<size_t>(width) * sizeof(T));
    std::fill(to + i * padded + width, to + (i + 1) * padded, T(0));
  }
  return {to, padded, kPanel<T>};
}

}  // namespace rapt::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
