// dx = dy w: the rows of w stream by once, and the sums stay in the first cache.
#include <algorithm>

#include "rapt/kernels/matmul_tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rapt/kernels/matmul_tile_dx.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "rapt/kernels/matmul_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels {
namespace HWY_NAMESPACE {

// Columns of dx whose sums stay in the first cache while the rows of w stream by, a few at a time.
template <class T>
struct Strip {
  static constexpr int64_t kGroups = 3, kRows = kGroups * kDxRows, kInner = 16;
  static constexpr int64_t kWidth = 2048 / sizeof(T);
  static constexpr int64_t kStride =
      kWidth + 64 / sizeof(T);  // rows must not meet in one cache set
  HWY_ALIGN T sums[kRows * kStride];
  HWY_ALIGN T dy[kInner * kRows];  // turned: a row of w is multiplied by neighbours
};

// A block of a strip: R rows, V vectors of columns (the last with `width` elements where it is not
// whole), over `inner` rows of w.
template <class T, int V>
struct DxBlock {
  const T *w, *next;  // next: the rows of w that are wanted after these
  int64_t ldw, inner, width;
  bool fresh;

  template <int R>
  HWY_INLINE void run(const T* dy, T* sums) const {
    const Lanes<T> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const bool whole = width == lanes;
    constexpr int64_t kStride = Strip<T>::kStride;
    Vec<T> acc[R][V];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) {
        acc[r][v] = fresh ? hn::Zero(d) : hn::Load(d, sums + r * kStride + v * lanes);
      }
    }
    for (int64_t n = 0; n < inner; ++n) {
      Vec<T> weight[V];
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) {
        const T* from = w + n * ldw + v * lanes;
        if (v % kLine<T> == 0) hwy::Prefetch(next + n * ldw + v * lanes);
        weight[v] = v + 1 < V || whole ? hn::LoadU(d, from) : load_some(from, width);
      }
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        const Vec<T> factor = hn::Set(d, dy[n * Strip<T>::kRows + r]);
#pragma GCC unroll 16
        for (int v = 0; v < V; ++v) acc[r][v] = hn::MulAdd(factor, weight[v], acc[r][v]);
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
      for (int v = 0; v < V; ++v) hn::Store(acc[r][v], d, sums + r * kStride + v * lanes);
    }
  }
};

// The sums of one strip of at most Strip::kRows rows.
template <class T>
HWY_INLINE void add_up(const T* dy, int64_t lddy, const T* w, int64_t ldw, int64_t rows,
                       int64_t width, int64_t N, Strip<T>& strip) {
  using S = Strip<T>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(Lanes<T>()));
  for (int64_t n = 0; n < N; n += S::kInner) {
    const int64_t inner = std::min(S::kInner, N - n);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < inner; ++i) strip.dy[i * S::kRows + r] = dy[r * lddy + n + i];
    }
    const T* weight = w + n * ldw;
    const T* next = n + 2 * S::kInner <= N ? weight + S::kInner * ldw : weight;
    int64_t k = 0;
    for (; k + kDxVectors * lanes <= width; k += kDxVectors * lanes) {
      const DxBlock<T, kDxVectors> body{weight + k, next + k, ldw, inner, lanes, n == 0};
      in_groups(rows, kDxRows, [&](int64_t row, int64_t count) HWY_ATTR {
        with_rows<kDxRows>(count, body, strip.dy + row, strip.sums + row * S::kStride + k);
      });
    }
    for (; k < width; k += lanes) {
      const DxBlock<T, 1> body{weight + k, next + k, ldw, inner, std::min(lanes, width - k),
                               n == 0};
      in_groups(rows, kDxRows, [&](int64_t row, int64_t count) HWY_ATTR {
        with_rows<kDxRows>(count, body, strip.dy + row, strip.sums + row * S::kStride + k);
      });
    }
  }
}

template <class T>
void dx(const T* dy, int64_t lddy, const T* w, int64_t ldw, T* to, int64_t lddx, int64_t rows,
        int64_t cols, int64_t N, bool accumulate) {
  Strip<T> strip;
  const int64_t widest = rows <= kDxRows ? Strip<T>::kWidth : Strip<T>::kWidth / 2;
  for (int64_t row = 0; row < rows; row += Strip<T>::kRows) {
    const int64_t count = std::min(Strip<T>::kRows, rows - row);
    for (int64_t from = 0; from < cols; from += widest) {
      const int64_t width = std::min(widest, cols - from);
      add_up(dy + row * lddy, lddy, w + from, ldw, count, width, N, strip);
      for (int64_t r = 0; r < count; ++r) {
        const T* sums = strip.sums + r * Strip<T>::kStride;
        T* out = to + (row + r) * lddx + from;
        for (int64_t k = 0; k < width; ++k) out[k] = accumulate ? out[k] + sums[k] : sums[k];
      }
    }
  }
}

void dx_f32(const float* dy, int64_t lddy, const float* w, int64_t ldw, float* to, int64_t lddx,
            int64_t rows, int64_t cols, int64_t N, bool accumulate) {
  dx(dy, lddy, w, ldw, to, lddx, rows, cols, N, accumulate);
}
void dx_f64(const double* dy, int64_t lddy, const double* w, int64_t ldw, double* to, int64_t lddx,
            int64_t rows, int64_t cols, int64_t N, bool accumulate) {
  dx(dy, lddy, w, ldw, to, lddx, rows, cols, N, accumulate);
}
}  // namespace HWY_NAMESPACE
}  // namespace rapt::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rapt::kernels {

HWY_EXPORT(dx_f32);
HWY_EXPORT(dx_f64);

template <>
void tile_dx(const float* dy, int64_t lddy, const float* w, int64_t ldw, float* dx, int64_t lddx,
             int64_t rows, int64_t cols, int64_t N, bool accumulate) {
  HWY_DYNAMIC_DISPATCH(dx_f32)(dy, lddy, w, ldw, dx, lddx, rows, cols, N, accumulate);
}
template <>
void tile_dx(const double* dy, int64_t lddy, const double* w, int64_t ldw, double* dx, int64_t lddx,
             int64_t rows, int64_t cols, int64_t N, bool accumulate) {
  HWY_DYNAMIC_DISPATCH(dx_f64)(dy, lddy, w, ldw, dx, lddx, rows, cols, N, accumulate);
}

}  // namespace rapt::kernels
#endif  // HWY_ONCE
