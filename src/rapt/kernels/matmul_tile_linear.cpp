// y = x w^T by blocks of dot products: every vector of w that is loaded meets several rows of x.
#include <algorithm>
#include <type_traits>

#include "rapt/kernels/matmul_tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rapt/kernels/matmul_tile_linear.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "rapt/kernels/matmul_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels {
namespace HWY_NAMESPACE {

// Four elements, as many vectors of 128 bits as they take.
template <class T>
struct Four {
#if HWY_TARGET == HWY_SCALAR
  static constexpr hn::Sisd<T> kTag{};
  static constexpr int kVectors = 4;
#else
  static constexpr hn::Full128<T> kTag{};
  static constexpr int kVectors = sizeof(T) / 4;
#endif
  hn::Vec<std::remove_const_t<decltype(kTag)>> v[kVectors];
};

#if HWY_TARGET == HWY_SCALAR
template <class V>
HWY_INLINE Four<hn::TFromV<V>> sums_of_four(const V* v) {
  return {{v[0], v[1], v[2], v[3]}};
}
#else
// The sum of the halves of v, again and again, until one block of 128 bits is left.
template <class D>
HWY_INLINE hn::Vec<hn::Full128<hn::TFromD<D>>> fold(D, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) <= 16) {
    return v;
  } else {
    const hn::Half<D> half;
    return fold(half, hn::Add(hn::UpperHalf(half, v), hn::LowerHalf(half, v)));
  }
}

// The sums of the lanes of four vectors, always in one order.
HWY_INLINE Four<float> sums_of_four(const Vec<float>* v) {
  const Lanes<float> d;
  const Lanes<double> pairs;
  const auto a = hn::Add(hn::InterleaveLower(d, v[0], v[1]), hn::InterleaveUpper(d, v[0], v[1]));
  const auto b = hn::Add(hn::InterleaveLower(d, v[2], v[3]), hn::InterleaveUpper(d, v[2], v[3]));
  const auto low = hn::InterleaveLower(pairs, hn::BitCast(pairs, a), hn::BitCast(pairs, b));
  const auto high = hn::InterleaveUpper(pairs, hn::BitCast(pairs, a), hn::BitCast(pairs, b));
  return {{fold(d, hn::Add(hn::BitCast(d, low), hn::BitCast(d, high)))}};
}
HWY_INLINE Four<double> sums_of_four(const Vec<double>* v) {
  const Lanes<double> d;
  const auto a = hn::Add(hn::InterleaveLower(d, v[0], v[1]), hn::InterleaveUpper(d, v[0], v[1]));
  const auto b = hn::Add(hn::InterleaveLower(d, v[2], v[3]), hn::InterleaveUpper(d, v[2], v[3]));
  return {{fold(d, a), fold(d, b)}};
}
#endif

// Asks for what stands `distance` elements on, if there is anything, in the cache of that level.
template <int Level, class T>
HWY_INLINE void fetch(const T* from, int64_t distance) {
  const auto at = reinterpret_cast<uintptr_t>(from) + static_cast<uintptr_t>(distance) * sizeof(T);
  __builtin_prefetch(reinterpret_cast<const void*>(at), 0, 4 - Level);
}

// One block of y: all of its rows that a group has, J <= 4 outputs, one block of K.
template <class T, int J>
struct Outputs {
  const T *w, *ahead, *bias;  // ahead: the rows of w a panel on, of which
  int64_t every, turn;        // this pass fetches one line in `every`, from the `turn`th on
  int64_t ldw, ldy, K;
  bool first;  // the first block of K starts from the bias, the others add to y

  template <int R>
  HWY_INLINE void run(const T* x, int64_t ldx, T* y) const {
    const Lanes<T> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    Vec<T> acc[R][kOutputs];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
      for (int j = 0; j < kOutputs; ++j) acc[r][j] = hn::Zero(d);
    }
    const auto step = [&](int64_t k, const auto& load) HWY_ATTR {
      if constexpr (R < J) {  // keeps in registers what is less
        Vec<T> row[R];
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r) row[r] = load(x + r * ldx + k);
#pragma GCC unroll 16
        for (int j = 0; j < J; ++j) {
          const Vec<T> weight = load(w + j * ldw + k);
#pragma GCC unroll 16
          for (int r = 0; r < R; ++r) acc[r][j] = hn::MulAdd(row[r], weight, acc[r][j]);
        }
      } else {
        Vec<T> weight[J];
#pragma GCC unroll 16
        for (int j = 0; j < J; ++j) weight[j] = load(w + j * ldw + k);
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r) {
          const Vec<T> row = load(x + r * ldx + k);
#pragma GCC unroll 16
          for (int j = 0; j < J; ++j) acc[r][j] = hn::MulAdd(row, weight[j], acc[r][j]);
        }
      }
    };
    const auto whole = [&](const T* p) HWY_ATTR { return hn::LoadU(d, p); };
    int64_t k = 0, until_fetch = turn;
    for (; k + kLine<T> * lanes <= K; k += kLine<T> * lanes) {
      if (until_fetch-- == 0) {
        until_fetch = every - 1;
#pragma GCC unroll 16
        for (int j = 0; j < J; ++j) {
          if (every == 1) {  // wanted soon
            fetch<1>(ahead, j * ldw + k);
          } else {
            fetch<2>(ahead, j * ldw + k);
          }
        }
      }
#pragma GCC unroll 16
      for (int i = 0; i < kLine<T>; ++i) step(k + i * lanes, whole);
    }
    for (; k + lanes <= K; k += lanes) step(k, whole);
    if (k < K) step(k, [&](const T* p) HWY_ATTR { return load_some(p, K - k); });
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) put(sums_of_four(acc[r]), y + r * ldy);
  }

  HWY_INLINE void put(const Four<T>& sums, T* y) const {
    const auto d = Four<T>::kTag;
    const auto lanes = static_cast<int>(hn::Lanes(d));
    HWY_ALIGN T buffer[kOutputs] = {};
    const T* before = buffer;
    if (J == kOutputs) {
      before = !first ? y : bias != nullptr ? bias : buffer;
    } else if (!first || bias != nullptr) {
      std::copy_n(first ? bias : y, J, buffer);
    }
    T* to = J == kOutputs ? y : buffer;
#pragma GCC unroll 4
    for (int i = 0; i < Four<T>::kVectors; ++i) {
      hn::StoreU(hn::Add(hn::LoadU(d, before + i * lanes), sums.v[i]), d, to + i * lanes);
    }
    if (J != kOutputs) std::copy_n(buffer, J, y);
  }
};

template <class T>
void linear(const T* x, int64_t ldx, const T* w, int64_t ldw, const T* bias, T* y, int64_t ldy,
            int64_t rows, int64_t cols, int64_t K) {
  constexpr int64_t kInner =
      2048 / sizeof(T);  // a group of rows and four outputs fit the first cache
  // Few rows stay in the first cache while a weight streams by; more take a panel of it each, and
  // the next panel is fetched a part in each pass over this one, so that memory is never idle.
  const bool few = rows <= 4 * kDotRows;
  const int64_t panel = few ? kOutputs : 32;
  const int64_t most = rows <= 5 * kDotRows ? kDotRows : kManyDotRows;
  const int64_t passes = few ? 1 : (rows + most - 1) / most;
  for (int64_t k = 0; k < K; k += kInner) {
    const int64_t inner = std::min(kInner, K - k);
    for (int64_t p = 0; p < cols; p += panel) {
      const int64_t end = std::min(cols, p + panel);
      int64_t pass = 0;
      in_groups(rows, most, [&](int64_t row, int64_t count) HWY_ATTR {
        const auto multiply = [&](auto outputs, int64_t n) HWY_ATTR {
          const T* const weight = w + n * ldw + k;
          const auto ahead =
              reinterpret_cast<uintptr_t>(weight) + static_cast<uintptr_t>(panel * ldw) * sizeof(T);
          const Outputs<T, decltype(outputs)::value> body{weight,
                                                          reinterpret_cast<const T*>(ahead),
                                                          bias == nullptr ? nullptr : bias + n,
                                                          passes,
                                                          pass % passes,
                                                          ldw,
                                                          ldy,
                                                          inner,
                                                          k == 0};
          with_rows<kDotRows>(count, body, x + row * ldx + k, ldx, y + row * ldy + n);
        };
        int64_t n = p;
        for (; n + kOutputs <= end; n += kOutputs)
          multiply(std::integral_constant<int, kOutputs>(), n);
        for (; n < end; ++n) multiply(std::integral_constant<int, 1>(), n);
        ++pass;
      });
    }
  }
}

void linear_f32(const float* x, int64_t ldx, const float* w, int64_t ldw, const float* bias,
                float* y, int64_t ldy, int64_t rows, int64_t cols, int64_t K) {
  linear(x, ldx, w, ldw, bias, y, ldy, rows, cols, K);
}
void linear_f64(const double* x, int64_t ldx, const double* w, int64_t ldw, const double* bias,
                double* y, int64_t ldy, int64_t rows, int64_t cols, int64_t K) {
  linear(x, ldx, w, ldw, bias, y, ldy, rows, cols, K);
}
}  // namespace HWY_NAMESPACE
}  // namespace rapt::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rapt::kernels {

HWY_EXPORT(linear_f32);
HWY_EXPORT(linear_f64);

template <>
void tile_linear(const float* x, int64_t ldx, const float* w, int64_t ldw, const float* bias,
                 float* y, int64_t ldy, int64_t rows, int64_t cols, int64_t K) {
  HWY_DYNAMIC_DISPATCH(linear_f32)(x, ldx, w, ldw, bias, y, ldy, rows, cols, K);
}
template <>
void tile_linear(const double* x, int64_t ldx, const double* w, int64_t ldw, const double* bias,
                 double* y, int64_t ldy, int64_t rows, int64_t cols, int64_t K) {
  HWY_DYNAMIC_DISPATCH(linear_f64)(x, ldx, w, ldw, bias, y, ldy, rows, cols, K);
}

}  // namespace rapt::kernels
#endif  // HWY_ONCE
