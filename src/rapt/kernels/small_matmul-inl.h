// Products of small matrices that lie in cache, per target: the arithmetic of attention's tiles.
//
// C (rows x columns) = [C +] A B, with A (rows x depth) read element by element and B (depth x
// columns) read in whole vectors. Each element of C is one chain of multiply-adds over the depth,
// in order, that starts from what was in C (or zero): its bits do not depend on the shape around
// it.
#if defined(RAPT_KERNELS_SMALL_MATMUL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_KERNELS_SMALL_MATMUL_INL_H_
#undef RAPT_KERNELS_SMALL_MATMUL_INL_H_
#else
#define RAPT_KERNELS_SMALL_MATMUL_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "rapt/kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
inline constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(hn::ScalableTag<T>()));
// Two vectors of B meet as many rows of A as leave registers for the sums.
template <class T>
inline constexpr int64_t kPanel = 2 * kLanes<T>;
inline constexpr size_t kBlockRows = kLanes<float> == 16 ? 14 : 6;

// The three ways in which A lies: rows at any distance, rows at a distance that the compiler knows,
// and transposed (rows side by side).
template <class T>
class StridedLeft {
 public:
  StridedLeft(const T* data, int64_t stride)
      : near_(data), far_(data + kFar * stride), stride_(stride) {}
  StridedLeft from(int64_t row) const { return {near_ + row * stride_, stride_}; }
  HWY_INLINE T at(size_t row) const {
    const int64_t i = static_cast<int64_t>(row);
    return i < kFar ? near_[i * stride_] : far_[(i - kFar) * stride_];
  }
  HWY_INLINE void advance() {
    ++near_;
    ++far_;
  }

 private:
  // Two pointers, so that the offsets of half a block's rows suffice: all of them fit registers.
  static constexpr int64_t kFar = static_cast<int64_t>(kBlockRows / 2);
  const T *near_, *far_;
  int64_t stride_;
};
template <class T, int64_t kStride>
struct FixedLeft {
  const T* data;
  FixedLeft from(int64_t row) const { return {data + row * kStride}; }
  HWY_INLINE T at(size_t row) const { return data[static_cast<int64_t>(row) * kStride]; }
  HWY_INLINE void advance() { ++data; }
};
template <class T, int64_t kStride>
struct TransposedLeft {
  const T* data;
  TransposedLeft from(int64_t row) const { return {data + row}; }
  HWY_INLINE T at(size_t row) const { return data[row]; }
  HWY_INLINE void advance() { data += kStride; }
};

// B in panels of kPanel columns: row k of panel p begins at data[p * panel + k * stride].
template <class T>
struct Right {
  const T* data;
  int64_t stride, panel;
};
template <class T>
Right<T> from_row(const Right<T>& b, int64_t row) {
  return {b.data + row * b.stride, b.stride, b.panel};
}
template <class T>  // a multiple of kPanel
Right<T> from_column(const Right<T>& b, int64_t column) {
  return {b.data + column / kPanel<T> * b.panel, b.stride, b.panel};
}

// C; with `add` the sums start from what is there. The row's elements of `before` and `after`,
// where these are set, multiply what is there first and the sums last.
template <class T>
struct Result {
  T* data;
  int64_t stride;
  bool add = false;
  const T* before = nullptr;
  const T* after = nullptr;
};

template <class T, size_t kVectors, class V = hn::Vec<hn::ScalableTag<T>>>
HWY_INLINE void clear_row(V (&sums)[kVectors]) {
  sums[0] = hn::Zero(hn::ScalableTag<T>());
  if constexpr (kVectors == 2) sums[1] = hn::Zero(hn::ScalableTag<T>());
}

// One row of a block: its sums from memory and back. The last vector has `last` elements, all of
// its lanes if it is whole.
template <bool kWhole, class T, size_t kVectors, class V = hn::Vec<hn::ScalableTag<T>>>
HWY_INLINE void load_row(const T* from, int64_t last, V (&sums)[kVectors]) {
  const hn::ScalableTag<T> d;
  if constexpr (kVectors == 2) sums[0] = hn::LoadU(d, from);
  from += (kVectors - 1) * kLanes<T>;
  if constexpr (kWhole) {
    sums[kVectors - 1] = hn::LoadU(d, from);
  } else {
    sums[kVectors - 1] = LoadPart(d, from, last);
  }
}

template <bool kWhole, class T, size_t kVectors, class V = hn::Vec<hn::ScalableTag<T>>>
HWY_INLINE void store_row(T* to, int64_t last, const V (&sums)[kVectors]) {
  const hn::ScalableTag<T> d;
  if constexpr (kVectors == 2) hn::StoreU(sums[0], d, to);
  to += (kVectors - 1) * kLanes<T>;
  if constexpr (kWhole) {
    hn::StoreU(sums[kVectors - 1], d, to);
  } else {
    StorePart(sums[kVectors - 1], d, to, last);
  }
}

template <class T, size_t kVectors, class V = hn::Vec<hn::ScalableTag<T>>>
HWY_INLINE void scale_row(T factor, V (&sums)[kVectors]) {
  const V all = hn::Set(hn::ScalableTag<T>(), factor);
  sums[0] = hn::Mul(all, sums[0]);
  if constexpr (kVectors == 2) sums[1] = hn::Mul(all, sums[1]);
}

template <size_t kVectors, class T, class V = hn::Vec<hn::ScalableTag<T>>>
HWY_INLINE void extend_row(T a, const V (&b)[kVectors], V (&sums)[kVectors]) {
  const V all = hn::Set(hn::ScalableTag<T>(), a);
  sums[0] = hn::MulAdd(all, b[0], sums[0]);
  if constexpr (kVectors == 2) sums[1] = hn::MulAdd(all, b[1], sums[1]);
}

// One block of C, sums in registers. Rows are unrolled by hand (through the pack), since the
// compilers keep an array in registers only if every index is a constant early on.
template <class Left, size_t kVectors, size_t... kRow, class T>
HWY_NOINLINE void multiply_block(Left a, const T* HWY_RESTRICT b, int64_t stride, int64_t depth,
                                 const Result<T>& c, int64_t last) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  V sums[sizeof...(kRow)][kVectors];
  const bool whole = last == kLanes<T>;
  if (!c.add) {
    (clear_row<T>(sums[kRow]), ...);
  } else if (whole) {
    (load_row<true>(c.data + int64_t{kRow} * c.stride, last, sums[kRow]), ...);
  } else {
    (load_row<false>(c.data + int64_t{kRow} * c.stride, last, sums[kRow]), ...);
  }
  if (c.add && c.before != nullptr) (scale_row(c.before[kRow], sums[kRow]), ...);
  for (int64_t k = 0; k < depth; ++k) {
    V row[kVectors];
    row[0] = hn::LoadU(d, b);
    if constexpr (kVectors == 2) row[1] = hn::LoadU(d, b + kLanes<T>);
    (extend_row<kVectors>(a.at(kRow), row, sums[kRow]), ...);
    a.advance();
    b += stride;
  }
  if (c.after != nullptr) (scale_row(c.after[kRow], sums[kRow]), ...);
  if (whole) {
    (store_row<true>(c.data + int64_t{kRow} * c.stride, last, sums[kRow]), ...);
  } else {
    (store_row<false>(c.data + int64_t{kRow} * c.stride, last, sums[kRow]), ...);
  }
}

template <class T, class Left>
using BlockFunction = void (*)(Left, const T*, int64_t, int64_t, const Result<T>&, int64_t);

template <class Left, size_t kVectors, size_t... kRow, class T>
void multiply_rows(Left a, const T* b, int64_t stride, int64_t depth, const Result<T>& c,
                   int64_t last, std::index_sequence<kRow...>) {
  multiply_block<Left, kVectors, kRow...>(a, b, stride, depth, c, last);
}

template <class T, class Left, size_t kVectors, size_t kRows>
void multiply_rows(Left a, const T* b, int64_t stride, int64_t depth, const Result<T>& c,
                   int64_t last) {
  multiply_rows<Left, kVectors>(a, b, stride, depth, c, last, std::make_index_sequence<kRows>());
}

template <class T, class Left, size_t kVectors, size_t... kRow>
HWY_INLINE BlockFunction<T, Left> block_of(int64_t rows, std::index_sequence<kRow...>) {
  static constexpr BlockFunction<T, Left> kBlocks[] = {
      multiply_rows<T, Left, kVectors, kRow + 1>...};
  return kBlocks[rows - 1];
}

// C (rows x columns) from A (rows x depth) and B, which is read in whole vectors.
template <class T, class Left>
void multiply(const Left& a, const Right<T>& b, int64_t rows, int64_t depth, int64_t columns,
              const Result<T>& c) {
  constexpr int64_t kMost = static_cast<int64_t>(kBlockRows);
  constexpr auto kRows = std::make_index_sequence<kBlockRows>();
  const int64_t blocks = (rows + kMost - 1) / kMost;
  for (int64_t column = 0; column < columns; column += kPanel<T>) {
    const T* panel = b.data + column / kPanel<T> * b.panel;
    const int64_t rest = columns - column;
    const bool narrow = rest <= kLanes<T>;
    const int64_t last = std::min(kLanes<T>, narrow ? rest : rest - kLanes<T>);
    for (int64_t block = 0; block < blocks; ++block) {  // of about equal height
      const int64_t first = block * rows / blocks, height = (block + 1) * rows / blocks - first;
      const Result<T> to{c.data + first * c.stride + column, c.stride, c.add,
                         c.before == nullptr ? nullptr : c.before + first,
                         c.after == nullptr ? nullptr : c.after + first};
      const auto function =
          narrow ? block_of<T, Left, 1>(height, kRows) : block_of<T, Left, 2>(height, kRows);
      function(a.from(first), panel, b.stride, depth, to, last);
    }
  }
}

}  // namespace rapt::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
