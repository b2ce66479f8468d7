// Loops over rows on vectors, and loads and stores of the part of a vector that ends a row.
//
// A row is of f32 or of bf16: a bf16 number is an f32 one in a register, rounded where it is
// stored.
#if defined(RAPT_KERNELS_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_KERNELS_ROWS_INL_H_
#undef RAPT_KERNELS_ROWS_INL_H_
#else
#define RAPT_KERNELS_ROWS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <cstring>

#include "rapt/kernels/bf16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE int64_t LaneCount(D d) {
  return static_cast<int64_t>(hn::Lanes(d));
}

// Masked loads and stores touch no memory outside their mask from AVX2 on, for lanes of at least
// 32 bits; elsewhere a buffer on the stack stands between.
inline constexpr bool kMasksAreSafe = HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2;

// The first `count` lanes from memory, `rest` in the others.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> LoadPart(D d, const T* p, int64_t count, hn::Vec<D> rest) {
  const auto mask = hn::FirstN(d, static_cast<size_t>(count));
  if constexpr (kMasksAreSafe && sizeof(T) >= 4) {
    return hn::IfThenElse(mask, hn::MaskedLoad(mask, d, p), rest);
  } else {
    HWY_ALIGN T buffer[HWY_LANES(T)] = {};
    std::memcpy(buffer, p, static_cast<size_t>(count) * sizeof(T));
    return hn::IfThenElse(mask, hn::Load(d, buffer), rest);
  }
}

template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> LoadPart(D d, const T* p, int64_t count) {
  if constexpr (kMasksAreSafe && sizeof(T) >= 4) {
    return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, p);
  } else {
    HWY_ALIGN T buffer[HWY_LANES(T)] = {};
    std::memcpy(buffer, p, static_cast<size_t>(count) * sizeof(T));
    return hn::Load(d, buffer);
  }
}

// Stores the first `count` lanes.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void StorePart(hn::Vec<D> v, D d, T* p, int64_t count) {
  if constexpr (kMasksAreSafe && sizeof(T) >= 4) {
    hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(count)), d, p);
  } else {
    HWY_ALIGN T buffer[HWY_LANES(T)];
    hn::Store(v, d, buffer);
    std::memcpy(p, buffer, static_cast<size_t>(count) * sizeof(T));
  }
}

template <class D>
HWY_INLINE hn::Vec<D> LoadPart(D d, const bf16* p, int64_t count) {
  HWY_ALIGN uint16_t buffer[HWY_LANES(float)] = {};
  std::memcpy(buffer, p, static_cast<size_t>(count) * sizeof(bf16));
  return LoadBf16(d, buffer);
}

template <class D>
HWY_INLINE hn::Vec<D> LoadPart(D d, const bf16* p, int64_t count, hn::Vec<D> rest) {
  return hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(count)), LoadPart(d, p, count), rest);
}

template <class D>
HWY_INLINE void StorePart(hn::Vec<D> v, D d, bf16* p, int64_t count) {
  HWY_ALIGN uint16_t buffer[HWY_LANES(float)];
  StoreBf16(d, v, buffer);
  std::memcpy(p, buffer, static_cast<size_t>(count) * sizeof(bf16));
}

// Whole vectors of either type.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> LoadAll(D d, const T* p) {
  return hn::LoadU(d, p);
}
template <class D>
HWY_INLINE hn::Vec<D> LoadAll(D d, const bf16* p) {
  return LoadBf16(d, p);
}

template <class D, class T = hn::TFromD<D>>
HWY_INLINE void StoreAll(hn::Vec<D> v, D d, T* p) {
  hn::StoreU(v, d, p);
}
template <class D>
HWY_INLINE void StoreAll(hn::Vec<D> v, D d, bf16* p) {
  StoreBf16(d, v, p);
}

// Whole vectors where `count` says so, else the part: for loops that treat both alike.
template <class D, class T>
HWY_INLINE hn::Vec<D> LoadUpTo(D d, const T* p, int64_t count) {
  return count >= LaneCount(d) ? LoadAll(d, p) : LoadPart(d, p, count);
}

template <class D, class T>
HWY_INLINE hn::Vec<D> LoadUpTo(D d, const T* p, int64_t count, hn::Vec<D> rest) {
  return count >= LaneCount(d) ? LoadAll(d, p) : LoadPart(d, p, count, rest);
}

template <class D, class T>
HWY_INLINE void StoreUpTo(hn::Vec<D> v, D d, T* p, int64_t count) {
  if (count >= LaneCount(d)) {
    StoreAll(v, d, p);
  } else {
    StorePart(v, d, p, count);
  }
}

// y = f(d, x) over one row; f is called on a whole vector also for the end of the row.
template <class X, class Y, class F>
HWY_INLINE void MapRow(const X* x, Y* y, int64_t cols, const F& f) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = LaneCount(d);
  int64_t i = 0;
  for (; i + lanes <= cols; i += lanes) StoreAll(f(d, LoadAll(d, x + i)), d, y + i);
  if (i < cols) StorePart(f(d, LoadPart(d, x + i, cols - i)), d, y + i, cols - i);
}

// y = f(d, a, b) over one row.
template <class A, class B, class Y, class F>
HWY_INLINE void MapRow(const A* a, const B* b, Y* y, int64_t cols, const F& f) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = LaneCount(d);
  int64_t i = 0;
  for (; i + lanes <= cols; i += lanes) {
    StoreAll(f(d, LoadAll(d, a + i), LoadAll(d, b + i)), d, y + i);
  }
  if (i < cols) {
    const int64_t rest = cols - i;
    StorePart(f(d, LoadPart(d, a + i, rest), LoadPart(d, b + i, rest)), d, y + i, rest);
  }
}

}  // namespace rapt::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
