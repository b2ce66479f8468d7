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

#include <cstdint>
#include <utility>

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
struct StridedLeft {
  const T* data;
  int64_t stride;
  StridedLeft from(int64_t row) const { return {data + row * stride, stride}; }
  HWY_INLINE T at(size_t row) const { return data[static_cast<int64_t>(row) * stride]; }
  HWY_INLINE void advance() { ++data; }
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

// C; with `add` the sums start from what is there, times the row's element of `before` if that is
// set.
template <class T>
struct Result {
  T* data;
  int64_t stride;
  bool add = false;
  const T* before = nullptr;
};

template <class T, size_t kVectors, class V = hn::Vec<hn::ScalableTag<T>>>
HWY_INLINE void start_row(const Result<T>& c, size_t row, V (&sums)[kVectors]) {
  const hn::ScalableTag<T> d;
  for (size_t j = 0; j < kVectors; ++j) {
    if (!c.add) {
      sums[j] = hn::Zero(d);
    } else {
      sums[j] = hn::LoadU(
          d, c.data + static_cast<int64_t>(row) * c.stride + static_cast<int64_t>(j) * kLanes<T>);
      if (c.before != nullptr) sums[j] = hn::Mul(sums[j], hn::Set(d, c.before[row]));
    }
  }
}

template <class T, size_t kVectors, class V = hn::Vec<hn::ScalableTag<T>>>
HWY_INLINE void extend_row(T a, const V (&b)[kVectors], V (&sums)[kVectors]) {
  const V all = hn::Set(hn::ScalableTag<T>(), a);
  sums[0] = hn::MulAdd(all, b[0], sums[0]);
  if constexpr (kVectors == 2) sums[1] = hn::MulAdd(all, b[1], sums[1]);
}

template <class T, size_t kVectors, class V = hn::Vec<hn::ScalableTag<T>>>
HWY_INLINE void finish_row(const Result<T>& c, size_t row, const V (&sums)[kVectors]) {
  const hn::ScalableTag<T> d;
  T* to = c.data + static_cast<int64_t>(row) * c.stride;
  hn::StoreU(sums[0], d, to);
  if constexpr (kVectors == 2) hn::StoreU(sums[1], d, to + kLanes<T>);
}

// One block of C, sums in registers. Rows are unrolled by hand (through the pack), since the
// compilers keep an array in registers only if every index is a constant early on.
template <class T, class Left, size_t kVectors, size_t... kRow>
HWY_NOINLINE void multiply_block(Left a, const T* HWY_RESTRICT b, int64_t stride, int64_t depth,
                                 const Result<T>& c, std::index_sequence<kRow...>) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  V sums[sizeof...(kRow)][kVectors];
  (start_row<T, kVectors>(c, kRow, sums[kRow]), ...);
  for (int64_t k = 0; k < depth; ++k) {
    V row[kVectors];
    row[0] = hn::LoadU(d, b);
    if constexpr (kVectors == 2) row[1] = hn::LoadU(d, b + kLanes<T>);
    (extend_row<T, kVectors>(a.at(kRow), row, sums[kRow]), ...);
    a.advance();
    b += stride;
  }
  (finish_row<T, kVectors>(c, kRow, sums[kRow]), ...);
}

template <class T, class Left>
using BlockFunction = void (*)(Left, const T*, int64_t, int64_t, const Result<T>&);

template <class T, class Left, size_t kVectors, size_t kRows>
void multiply_rows(Left a, const T* b, int64_t stride, int64_t depth, const Result<T>& c) {
  multiply_block<T, Left, kVectors>(a, b, stride, depth, c, std::make_index_sequence<kRows>());
}

template <class T, class Left, size_t kVectors, size_t... kRow>
HWY_INLINE BlockFunction<T, Left> block_of(int64_t rows, std::index_sequence<kRow...>) {
  static constexpr BlockFunction<T, Left> kBlocks[] = {
      multiply_rows<T, Left, kVectors, kRow + 1>...};
  return kBlocks[rows - 1];
}

// C (rows x vectors * kLanes) from A (rows x depth) and B.
template <class T, class Left>
void multiply(const Left& a, const Right<T>& b, int64_t rows, int64_t depth, int64_t vectors,
              const Result<T>& c) {
  constexpr int64_t kMost = static_cast<int64_t>(kBlockRows);
  constexpr auto kRows = std::make_index_sequence<kBlockRows>();
  const int64_t blocks = (rows + kMost - 1) / kMost;
  for (int64_t column = 0; column < vectors; column += 2) {
    const T* panel = b.data + column / 2 * b.panel;
    for (int64_t block = 0; block < blocks; ++block) {  // of about equal height
      const int64_t first = block * rows / blocks, height = (block + 1) * rows / blocks - first;
      const Result<T> to{c.data + first * c.stride + column * kLanes<T>, c.stride, c.add,
                         c.before == nullptr ? nullptr : c.before + first};
      const auto function = vectors - column == 1 ? block_of<T, Left, 1>(height, kRows)
                                                  : block_of<T, Left, 2>(height, kRows);
      function(a.from(first), panel, b.stride, depth, to);
    }
  }
}

}  // namespace rapt::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
