// Numbers to int8 and sums back to f32.
#include "rapt/kernels/int8_rows.h"

#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rapt/kernels/int8_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Ints = hn::ScalableTag<int32_t>;
using Bytes = hn::Rebind<uint8_t, Ints>;
using SignedBytes = hn::Rebind<int8_t, Ints>;

constexpr float kLeastRange = 1e-30f;  // below, a row is zero: its inverse must be finite

// The least and the largest number of a row, 0 among them, and whether all are finite.
struct Range {
  float low, high;
  bool finite;
};

HWY_INLINE Range range_of(const float* x, int64_t K) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto low = hn::Zero(d), high = hn::Zero(d), bad = hn::Zero(d);
  int64_t k = 0;
  for (; k + lanes <= K; k += lanes) {
    const auto v = hn::LoadU(d, x + k);
    low = hn::Min(low, v);
    high = hn::Max(high, v);
    bad = hn::Add(bad, hn::Sub(v, v));  // NaN for what is not finite
  }
  Range range{hn::GetLane(hn::MinOfLanes(d, low)), hn::GetLane(hn::MaxOfLanes(d, high)),
              hn::GetLane(hn::SumOfLanes(d, bad)) == 0};
  for (; k < K; ++k) {
    range.low = std::min(range.low, x[k]);
    range.high = std::max(range.high, x[k]);
    range.finite = range.finite && x[k] - x[k] == 0;
  }
  return range;
}

// Numbers times `factor`, to the nearest integer, ties to even, plus `zero`, within [least, most].
template <class Byte, class Tag>
HWY_INLINE void to_bytes(const float* x, int64_t K, float factor, int32_t zero, int32_t least,
                         int32_t most, Byte* q) {
  const Floats d;
  const Ints di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto convert = [&](auto v) HWY_ATTR {
    const auto nearest = hn::NearestInt(hn::Mul(v, hn::Set(d, factor)));
    const auto moved = hn::Add(nearest, hn::Set(di, zero));
    return hn::DemoteTo(Tag(), hn::Min(hn::Max(moved, hn::Set(di, least)), hn::Set(di, most)));
  };
  int64_t k = 0;
  for (; k + lanes <= K; k += lanes) hn::StoreU(convert(hn::LoadU(d, x + k)), Tag(), q + k);
  if (k == K) return;
  HWY_ALIGN float rest[hn::MaxLanes(d)] = {};
  HWY_ALIGN Byte bytes[hn::MaxLanes(d)];
  std::copy_n(x + k, K - k, rest);
  hn::Store(convert(hn::Load(d, rest)), Tag(), bytes);
  std::copy_n(bytes, K - k, q + k);
}

Int8Row quantise_row(const float* x, int64_t K, uint8_t* q) {
  const Range r = range_of(x, K);
  const float range = r.high - r.low;
  const int64_t padded = (K + kInt8Block - 1) / kInt8Block * kInt8Block;
  const bool finite = r.finite && range <= std::numeric_limits<float>::max();
  if (!finite || range < kLeastRange) {
    std::fill_n(q, padded, uint8_t{0});
    return {finite ? 0.0f : std::numeric_limits<float>::quiet_NaN(), 0};
  }
  const float factor = 255.0f / range;
  const auto zero = hn::GetLane(hn::NearestInt(hn::Set(Floats(), -r.low * factor)));
  to_bytes<uint8_t, Bytes>(x, K, factor, zero, 0, 255, q);
  std::fill(q + K, q + padded, uint8_t{0});
  return {range / 255.0f, zero};
}

float quantise_output(const float* w, int64_t K, int8_t* q) {
  const Range r = range_of(w, K);
  const float largest = std::max(-r.low, r.high);
  if (!r.finite || largest < kLeastRange) {
    std::fill_n(q, K, int8_t{0});
    return r.finite ? 0.0f : std::numeric_limits<float>::quiet_NaN();
  }
  to_bytes<int8_t, SignedBytes>(w, K, 127.0f / largest, 0, -127, 127, q);
  return largest / 127.0f;
}

// 32 outputs of one row. What stands at `bias` may be null.
HWY_INLINE void finish_row(const int32_t* block, const Int8Row& row, const float* scales,
                           const int32_t* sums, const float* bias, float* y) {
  const Floats d;
  const Ints di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto zero = hn::Set(di, row.zero);
  const auto scale = hn::Set(d, row.scale);
  for (int64_t i = 0; i < kInt8Panel; i += lanes) {
    const auto sum = hn::Sub(hn::LoadU(di, block + i), hn::Mul(zero, hn::LoadU(di, sums + i)));
    const auto value = hn::Mul(hn::ConvertTo(d, sum), hn::Mul(scale, hn::LoadU(d, scales + i)));
    hn::StoreU(bias == nullptr ? value : hn::Add(value, hn::LoadU(d, bias + i)), d, y + i);
  }
}

void finish(const Int8Result& r, const int32_t* block, int64_t row, int64_t rows, int64_t panel) {
  const int64_t first = panel * kInt8Panel, begin = std::max(first, r.begin),
                end = std::min(first + kInt8Panel, r.end);
  const float* const scales = r.scales + first;
  const int32_t* const sums = r.sums + first;
  if (end - begin == kInt8Panel) {
    const float* const bias = r.bias == nullptr ? nullptr : r.bias + (first - r.begin);
    for (int64_t i = 0; i < rows; ++i) {
      finish_row(block + i * kInt8Panel, r.rows[row + i], scales, sums, bias,
                 r.y + (row + i) * r.ldy + (first - r.begin));
    }
    return;
  }
  float bias[kInt8Panel] = {}, y[kInt8Panel];
  if (r.bias != nullptr)
    std::copy_n(r.bias + (begin - r.begin), end - begin, bias + (begin - first));
  for (int64_t i = 0; i < rows; ++i) {
    finish_row(block + i * kInt8Panel, r.rows[row + i], scales, sums,
               r.bias == nullptr ? nullptr : bias, y);
    std::copy_n(y + (begin - first), end - begin, r.y + (row + i) * r.ldy + (begin - r.begin));
  }
}

// R rows by 4 outputs: every vector of a weight that is loaded meets all of them.
template <int R>
HWY_INLINE void dot_outputs(const uint8_t* x, int64_t ldx, const int8_t* w, int64_t K,
                            int32_t* block) {
  constexpr int kOutputs = 4;
  const hn::ScalableTag<int16_t> d16;
  const hn::Rebind<uint8_t, decltype(d16)> du;
  const hn::Rebind<int8_t, decltype(d16)> ds;
  const Ints di;
  using V = hn::Vec<Ints>;
  V even[R][kOutputs], odd[R][kOutputs];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int j = 0; j < kOutputs; ++j) even[r][j] = odd[r][j] = hn::Zero(di);
  }
  const auto lanes = static_cast<int64_t>(hn::Lanes(d16));
  for (int64_t k = 0; k < K; k += lanes) {
#pragma GCC unroll 8
    for (int j = 0; j < kOutputs; ++j) {
      const auto weight = hn::PromoteTo(d16, hn::LoadU(ds, w + j * K + k));
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const auto row = hn::PromoteTo(d16, hn::LoadU(du, x + r * ldx + k));
        even[r][j] = hn::ReorderWidenMulAccumulate(di, row, weight, even[r][j], odd[r][j]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int j = 0; j < kOutputs; ++j) {
      block[r * kInt8Panel + j] = hn::GetLane(hn::SumOfLanes(di, hn::Add(even[r][j], odd[r][j])));
    }
  }
}

void dot(const Int8Product& p, const Int8Result& result) {
  for (int64_t panel = p.first; panel < p.last; ++panel) {
    for (int64_t first = 0; first < p.rows; first += kInt8Panel) {
      const int64_t rows = std::min(kInt8Panel, p.rows - first);
      HWY_ALIGN int32_t block[kInt8Panel * kInt8Panel];
      for (int64_t j = 0; j < kInt8Panel; j += 4) {
        const int8_t* const w = p.packed + (panel * kInt8Panel + j) * p.K;
        const uint8_t* const x = p.x + (p.row + first) * p.ldx;
        int64_t r = 0;
        for (; r + 2 <= rows; r += 2)
          dot_outputs<2>(x + r * p.ldx, p.ldx, w, p.K, block + r * kInt8Panel + j);
        if (r < rows) dot_outputs<1>(x + r * p.ldx, p.ldx, w, p.K, block + r * kInt8Panel + j);
      }
      finish(result, block, p.row + first, rows, panel);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace rapt::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rapt::kernels {

HWY_EXPORT(quantise_row);
HWY_EXPORT(quantise_output);
HWY_EXPORT(finish);
HWY_EXPORT(dot);

Int8Row int8_quantise_row(const float* x, int64_t K, uint8_t* q) {
  return HWY_DYNAMIC_DISPATCH(quantise_row)(x, K, q);
}
float int8_quantise_output(const float* w, int64_t K, int8_t* q) {
  return HWY_DYNAMIC_DISPATCH(quantise_output)(w, K, q);
}
void int8_finish(const Int8Result& result, const int32_t* block, int64_t row, int64_t rows,
                 int64_t panel) {
  HWY_DYNAMIC_DISPATCH(finish)(result, block, row, rows, panel);
}
void int8_dot(const Int8Product& product, const Int8Result& result) {
  HWY_DYNAMIC_DISPATCH(dot)(product, result);
}

}  // namespace rapt::kernels
#endif  // HWY_ONCE
