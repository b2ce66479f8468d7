#include "rapt/kernels/layer_norm.h"

#include <cmath>

#include "rapt/kernels/reference_rows.h"
#include "rapt/kernels/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rapt/kernels/layer_norm.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "rapt/kernels/dropout-inl.h"
#include "rapt/kernels/row_sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels::HWY_NAMESPACE {
namespace {

// z = residual + dropout(x); residual may be null.
template <class T>
HWY_INLINE void MakeRow(const Dropout& dropout, RowId id, const T* x, const T* residual, T* z,
                        int64_t cols) {
  ForDropped(dropout, id, 0, cols, [=](auto d, int64_t j, int64_t count, auto drop) HWY_ATTR {
    const auto kept = drop(LoadUpTo(d, x + j, count));
    const auto sum = residual == nullptr ? kept : hn::Add(LoadUpTo(d, residual + j, count), kept);
    StoreUpTo(sum, d, z + j, count);
  });
}

struct Moments {
  float mean, correction, rstd;  // the exact mean is mean + correction
};

// The second pass sums z - mean as well as its square: this takes out what rounding left in the
// mean, so that rows far from zero keep their accuracy.
template <class T>
HWY_INLINE Moments RowMoments(const T* z, int64_t cols, double epsilon) {
  const hn::ScalableTag<float> d;
  const double n = static_cast<double>(cols);
  const float sum = RowSum(cols, [=](auto tag, int64_t i, int64_t count)
                                     HWY_ATTR { return LoadUpTo(tag, z + i, count); });
  const float mean = static_cast<float>(static_cast<double>(sum) / n);
  const auto vm = hn::Set(d, mean);
  double total = 0, squares = 0;
  TwoRowSums(
      cols,
      [=](auto tag, int64_t i, int64_t count, auto& a, auto& b) HWY_ATTR {
        const auto centred = hn::Sub(LoadUpTo(tag, z + i, count, vm), vm);
        a = hn::Add(a, centred);
        b = hn::MulAdd(centred, centred, b);
      },
      total, squares);
  const double correction = total / n;
  const double variance = std::max(squares / n - correction * correction, 0.0);
  return {mean, static_cast<float>(correction),
          static_cast<float>(1 / std::sqrt(variance + epsilon))};
}

// y = (z - mean) * rstd * gain + shift; y may be z.
template <class T>
HWY_INLINE void NormaliseRow(const T* z, const Moments& m, const float* gain, const float* shift,
                             T* y, int64_t cols) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = LaneCount(d);
  const auto mean = hn::Set(d, m.mean), rstd = hn::Set(d, m.rstd);
  const auto offset = hn::Set(d, -m.correction * m.rstd);
  for (int64_t i = 0; i < cols; i += lanes) {
    const int64_t count = std::min(lanes, cols - i);
    const auto n = hn::MulAdd(hn::Sub(LoadUpTo(d, z + i, count), mean), rstd, offset);
    const auto g = LoadUpTo(d, gain + i, count);
    const auto v =
        shift == nullptr ? hn::Mul(n, g) : hn::MulAdd(n, g, LoadUpTo(d, shift + i, count));
    StoreUpTo(v, d, y + i, count);
  }
}

template <class T>
void LayerNormRows(const LayerNormArgs<T>& a, int64_t begin, int64_t end, int64_t cols) {
  const bool plain = a.dropout.probability <= 0 && a.residual == nullptr;
  for (int64_t r = begin; r < end; ++r) {
    const T* x = a.x + r * a.ldx;
    T* y = a.y + r * a.ldy;
    const T* z = x;
    if (!plain || (a.z != nullptr && a.z + r * a.ldz != x)) {
      T* out = a.z == nullptr ? y : a.z + r * a.ldz;
      MakeRow(a.dropout, row_id(a.ids, r), x,
              a.residual == nullptr ? nullptr : a.residual + r * a.ldr, out, cols);
      z = out;
    }
    const Moments m = RowMoments(z, cols, a.epsilon);
    if (a.mean != nullptr) a.mean[r] = m.mean + m.correction;
    if (a.rstd != nullptr) a.rstd[r] = m.rstd;
    NormaliseRow(z, m, a.gain, a.shift, y, cols);
  }
}

constexpr auto& LayerNormRowsF32 = LayerNormRows<float>;
constexpr auto& LayerNormRowsBf16 = LayerNormRows<bf16>;

}  // namespace
}  // namespace rapt::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rapt::kernels {

HWY_EXPORT(LayerNormRowsF32);
HWY_EXPORT(LayerNormRowsBf16);

void layer_norm(const LayerNormArgs<float>& args, int64_t rows, int64_t cols) {
  if (cols <= 0) return;
  parallel_ranges(rows, rows_per_chunk(cols), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(LayerNormRowsF32)(args, begin, end, cols);
  });
}

void layer_norm(const LayerNormArgs<bf16>& args, int64_t rows, int64_t cols) {
  if (cols <= 0) return;
  parallel_ranges(rows, rows_per_chunk(cols), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(LayerNormRowsBf16)(args, begin, end, cols);
  });
}

void layer_norm(const LayerNormArgs<double>& args, int64_t rows, int64_t cols) {
  if (cols <= 0) return;
  parallel_ranges(rows, rows_per_chunk(cols), [&](int64_t begin, int64_t end) {
    LayerNormArgs<double> part = args;
    part.x += begin * args.ldx;
    part.residual = reference::row_or_null(args.residual, begin, args.ldr);
    part.ids = reference::row_or_null(args.ids, begin, 1);
    part.y += begin * args.ldy;
    part.z = reference::row_or_null(args.z, begin, args.ldz);
    part.mean = reference::row_or_null(args.mean, begin, 1);
    part.rstd = reference::row_or_null(args.rstd, begin, 1);
    reference::layer_norm(part, end - begin, cols);
  });
}

}  // namespace rapt::kernels
#endif
