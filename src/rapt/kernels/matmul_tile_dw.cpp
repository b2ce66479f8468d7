// dw = dy^T x: bound by the writing of dw, which is not read first where it is fresh.
#include <algorithm>

#include "rapt/kernels/matmul_tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rapt/kernels/matmul_tile_dw.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "rapt/kernels/matmul_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels {
namespace HWY_NAMESPACE {

// A block of dw: R outputs, V vectors of inputs (the last with `width` elements where it is not
// whole).
template <class T, int V>
struct DwBlock {
  int64_t lddy, ldx, lddw, M, width;
  bool accumulate, past_cache;

  template <int R>
  HWY_INLINE void run(const T* dy, const T* x, T* dw) const {
    const Lanes<T> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const bool whole = width == lanes;
    const auto load = [&](const T* p, int v) HWY_ATTR {
      return v + 1 < V || whole ? hn::LoadU(d, p + v * lanes) : load_some(p + v * lanes, width);
    };
    Vec<T> acc[R][V];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) acc[r][v] = accumulate ? load(dw + r * lddw, v) : hn::Zero(d);
    }
    for (int64_t m = 0; m < M; ++m) {
      Vec<T> row[V];
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) row[v] = load(x + m * ldx, v);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        const Vec<T> factor = hn::Set(d, dy[m * lddy + r]);
#pragma GCC unroll 16
        for (int v = 0; v < V; ++v) acc[r][v] = hn::MulAdd(factor, row[v], acc[r][v]);
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) {
        T* to = dw + r * lddw + v * lanes;
        if (v + 1 == V && !whole) {
          store_some(acc[r][v], to, width);
        } else if (past_cache) {
          hn::Stream(acc[r][v], d, to);
        } else {
          hn::StoreU(acc[r][v], d, to);
        }
      }
    }
  }
};

template <class T>
void dw(const T* dy, int64_t lddy, const T* x, int64_t ldx, T* to, int64_t lddw, int64_t rows,
        int64_t cols, int64_t M, bool accumulate, bool past_cache) {
  constexpr int64_t kStrip = 2048 / sizeof(T);  // a strip of x stays in the first cache
  const auto lanes = static_cast<int64_t>(hn::Lanes(Lanes<T>()));
  const auto unaligned = [&](auto bytes) {
    return static_cast<size_t>(bytes) % (static_cast<size_t>(lanes) * sizeof(T)) != 0;
  };
  const bool stream =
      past_cache && !unaligned(reinterpret_cast<uintptr_t>(to)) && !unaligned(lddw * sizeof(T));
  for (int64_t strip = 0; strip < cols; strip += kStrip) {
    const int64_t end = std::min(cols, strip + kStrip);
    for (int64_t n = 0; n < rows; n += kDwRows) {
      const int64_t count = std::min<int64_t>(kDwRows, rows - n);
      int64_t k = strip;
      for (; k + kDwVectors * lanes <= end; k += kDwVectors * lanes) {
        const DwBlock<T, kDwVectors> body{lddy, ldx, lddw, M, lanes, accumulate, stream};
        with_rows<kDwRows>(count, body, dy + n, x + k, to + n * lddw + k);
      }
      for (; k < end; k += lanes) {
        const DwBlock<T, 1> body{lddy, ldx, lddw, M, std::min(lanes, end - k), accumulate, stream};
        with_rows<kDwRows>(count, body, dy + n, x + k, to + n * lddw + k);
      }
    }
  }
  if (stream) hwy::FlushStream();
}

void dw_f32(const float* dy, int64_t lddy, const float* x, int64_t ldx, float* to, int64_t lddw,
            int64_t rows, int64_t cols, int64_t M, bool accumulate, bool past_cache) {
  dw(dy, lddy, x, ldx, to, lddw, rows, cols, M, accumulate, past_cache);
}
void dw_f64(const double* dy, int64_t lddy, const double* x, int64_t ldx, double* to, int64_t lddw,
            int64_t rows, int64_t cols, int64_t M, bool accumulate, bool past_cache) {
  dw(dy, lddy, x, ldx, to, lddw, rows, cols, M, accumulate, past_cache);
}

}  // namespace HWY_NAMESPACE
}  // namespace rapt::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rapt::kernels {

HWY_EXPORT(dw_f32);
HWY_EXPORT(dw_f64);

template <>
void tile_dw(const float* dy, int64_t lddy, const float* x, int64_t ldx, float* dw, int64_t lddw,
             int64_t rows, int64_t cols, int64_t M, bool accumulate, bool past_cache) {
  HWY_DYNAMIC_DISPATCH(dw_f32)(dy, lddy, x, ldx, dw, lddw, rows, cols, M, accumulate, past_cache);
}
template <>
void tile_dw(const double* dy, int64_t lddy, const double* x, int64_t ldx, double* dw, int64_t lddw,
             int64_t rows, int64_t cols, int64_t M, bool accumulate, bool past_cache) {
  HWY_DYNAMIC_DISPATCH(dw_f64)(dy, lddy, x, ldx, dw, lddw, rows, cols, M, accumulate, past_cache);
}

}  // namespace rapt::kernels
#endif  // HWY_ONCE
