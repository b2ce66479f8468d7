// What the register blocks of the products share, for each target: included by their sources alone.
#if defined(RAPT_KERNELS_MATMUL_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_KERNELS_MATMUL_TILE_INL_H_
#undef RAPT_KERNELS_MATMUL_TILE_INL_H_
#else
#define RAPT_KERNELS_MATMUL_TILE_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "rapt/kernels/matmul_tile.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using Lanes = hn::ScalableTag<T>;
template <class T>
using Vec = hn::Vec<Lanes<T>>;

// Register blocks: accumulators, the vectors that they share, and one that changes, must fit the
// 32 registers of AVX-512 or the 16 of the others.
#if HWY_TARGET <= HWY_AVX3
constexpr int kDotRows = 7, kManyDotRows = 6, kDxRows = 14, kDxVectors = 2, kDwVectors = 4;
#else
constexpr int kDotRows = 3, kManyDotRows = 3, kDxRows = 6, kDxVectors = 2, kDwVectors = 2;
#endif
constexpr int kDwRows = 4;
constexpr int kOutputs = static_cast<int>(kTileOutputs);

// Vectors of T in a cache line: one of them fetches what is wanted next.
template <class T>
constexpr int kLine = std::max<int>(1, 64 / static_cast<int>(sizeof(T) * hn::MaxLanes(Lanes<T>())));

// The first `count` elements at p, then zeros; never reads past them.
template <class T>
HWY_INLINE Vec<T> load_some(const T* p, int64_t count) {
  const Lanes<T> d;
#if HWY_TARGET <= HWY_AVX2
  return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, p);
#else
  HWY_ALIGN T buffer[hn::MaxLanes(d)] = {};
  std::memcpy(buffer, p, static_cast<size_t>(count) * sizeof(T));
  return hn::Load(d, buffer);
#endif
}

template <class T>
HWY_INLINE void store_some(Vec<T> v, T* p, int64_t count) {
  const Lanes<T> d;
  HWY_ALIGN T buffer[hn::MaxLanes(d)];
  hn::Store(v, d, buffer);
  std::memcpy(p, buffer, static_cast<size_t>(count) * sizeof(T));
}

// body.run<R>(...) for the R that is known at run time.
template <int R, class Body, class... Args>
HWY_INLINE void with_rows(int64_t rows, const Body& body, Args... args) {
  if (rows == R) return body.template run<R>(args...);
  if constexpr (R > 1) with_rows<R - 1>(rows, body, args...);
}

// Calls body(first, count) for `rows` in groups of at most `most`, as equal as can be.
template <class Body>
HWY_INLINE void in_groups(int64_t rows, int64_t most, const Body& body) {
  const int64_t groups = (rows + most - 1) / most;
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t first = rows * g / groups;
    body(first, rows * (g + 1) / groups - first);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace rapt::kernels
HWY_AFTER_NAMESPACE();

#endif  // RAPT_KERNELS_MATMUL_TILE_INL_H_
