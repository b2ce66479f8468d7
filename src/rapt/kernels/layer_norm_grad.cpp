#include <algorithm>
#include <memory>

#include "rapt/base/memory.h"
#include "rapt/kernels/layer_norm.h"
#include "rapt/kernels/reference_rows.h"
#include "rapt/kernels/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rapt/kernels/layer_norm_grad.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "rapt/kernels/dropout-inl.h"
#include "rapt/kernels/row_sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels::HWY_NAMESPACE {
namespace {

struct RowMeans {
  float g, gn;  // the means of g = dy gain and of g n, where n is the normalised row
};

// Adds dy n to d_gain and dy to d_shift, if d_gain is not null (then neither is).
template <class T>
HWY_INLINE RowMeans SumRow(const T* z, const T* dy, float mean, float rstd, const float* gain,
                           float* d_gain, float* d_shift, int64_t cols) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = LaneCount(d);
  const auto vm = hn::Set(d, mean), vr = hn::Set(d, rstd);
  auto sum_g = hn::Zero(d), sum_gn = sum_g;
  for (int64_t i = 0; i < cols; i += lanes) {
    const int64_t count = std::min(lanes, cols - i);
    const auto n = hn::Mul(hn::Sub(LoadUpTo(d, z + i, count), vm), vr);
    const auto grad = LoadUpTo(d, dy + i, count);
    const auto g = hn::Mul(grad, LoadUpTo(d, gain + i, count));
    sum_g = hn::Add(sum_g, g);
    sum_gn = hn::MulAdd(g, n, sum_gn);
    if (d_gain != nullptr) {
      StoreUpTo(hn::MulAdd(grad, n, LoadUpTo(d, d_gain + i, count)), d, d_gain + i, count);
      StoreUpTo(hn::Add(grad, LoadUpTo(d, d_shift + i, count)), d, d_shift + i, count);
    }
  }
  const float scale = 1 / static_cast<float>(cols);
  return {hn::GetLane(hn::SumOfLanes(d, sum_g)) * scale,
          hn::GetLane(hn::SumOfLanes(d, sum_gn)) * scale};
}

// dz of row r, to where it goes.
template <class T>
HWY_INLINE void WriteRow(const LayerNormGrads<T>& a, int64_t r, RowMeans means, int64_t cols) {
  const T *z = a.z + r * a.ldz, *dy = a.dy + r * a.lddy;
  const float* gain = a.gain;
  T* dx = a.dx == nullptr ? nullptr : a.dx + r * a.lddx;
  T* dr = a.d_residual == nullptr ? nullptr : a.d_residual + r * a.lddr;
  const float mean = a.mean[r], rstd = a.rstd[r];
  const bool add_dx = a.add_dx, add_dr = a.add_d_residual;
  const Dropout none;
  ForDropped(dx == nullptr ? none : a.dropout, row_id(a.ids, r), 0, cols,
             [=](auto d, int64_t i, int64_t count, auto drop) HWY_ATTR {
               const auto vr = hn::Set(d, rstd);
               const auto n = hn::Mul(hn::Sub(LoadUpTo(d, z + i, count), hn::Set(d, mean)), vr);
               const auto g = hn::Mul(LoadUpTo(d, dy + i, count), LoadUpTo(d, gain + i, count));
               const auto centred = hn::Sub(g, hn::Set(d, means.g));
               const auto dz = hn::Mul(hn::NegMulAdd(n, hn::Set(d, means.gn), centred), vr);
               if (dx != nullptr) {
                 const auto v = drop(dz);
                 StoreUpTo(add_dx ? hn::Add(v, LoadUpTo(d, dx + i, count)) : v, d, dx + i, count);
               }
               if (dr != nullptr) {
                 StoreUpTo(add_dr ? hn::Add(dz, LoadUpTo(d, dr + i, count)) : dz, d, dr + i, count);
               }
             });
}

template <class T>
void LayerNormGradRows(const LayerNormGrads<T>& a, int64_t begin, int64_t end, int64_t cols,
                       float* d_gain, float* d_shift) {
  const bool rows_wanted = a.dx != nullptr || a.d_residual != nullptr;
  for (int64_t r = begin; r < end; ++r) {
    const RowMeans means = SumRow(a.z + r * a.ldz, a.dy + r * a.lddy, a.mean[r], a.rstd[r], a.gain,
                                  d_gain, d_shift, cols);
    if (rows_wanted) WriteRow(a, r, means, cols);
  }
}

constexpr auto& LayerNormGradRowsF32 = LayerNormGradRows<float>;
constexpr auto& LayerNormGradRowsBf16 = LayerNormGradRows<bf16>;

}  // namespace
}  // namespace rapt::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rapt::kernels {
namespace {

HWY_EXPORT(LayerNormGradRowsF32);
HWY_EXPORT(LayerNormGradRowsBf16);

// Rows [begin, end); the sums for gain and shift are added to d_gain and d_shift, if not null.
void grad_rows(const LayerNormGrads<float>& args, int64_t begin, int64_t end, int64_t cols,
               float* d_gain, float* d_shift) {
  HWY_DYNAMIC_DISPATCH(LayerNormGradRowsF32)(args, begin, end, cols, d_gain, d_shift);
}

void grad_rows(const LayerNormGrads<bf16>& args, int64_t begin, int64_t end, int64_t cols,
               float* d_gain, float* d_shift) {
  HWY_DYNAMIC_DISPATCH(LayerNormGradRowsBf16)(args, begin, end, cols, d_gain, d_shift);
}

void grad_rows(const LayerNormGrads<double>& args, int64_t begin, int64_t end, int64_t cols,
               double* d_gain, double* d_shift) {
  LayerNormGrads<double> part = args;
  part.z += begin * args.ldz;
  part.mean += begin;
  part.rstd += begin;
  part.dy += begin * args.lddy;
  part.ids = reference::row_or_null(args.ids, begin, 1);
  part.dx = reference::row_or_null(args.dx, begin, args.lddx);
  part.d_residual = reference::row_or_null(args.d_residual, begin, args.lddr);
  part.d_gain = d_gain;
  part.d_shift = d_shift;
  part.add_d_gain = part.add_d_shift = true;
  reference::layer_norm_grad(part, end - begin, cols);
}

// total (+)= the sum over blocks of one of their `cols` sums, in order.
template <class T>
void add_blocks(const T* sums, int64_t stride, int64_t blocks, T* total, bool accumulate,
                int64_t cols) {
  if (total == nullptr) return;
  if (!accumulate) std::fill(total, total + cols, T(0));
  for (int64_t block = 0; block < blocks; ++block) {
    for (int64_t j = 0; j < cols; ++j) total[j] += sums[block * stride + j];
  }
}

template <class T>
void grad(const LayerNormGrads<T>& args, int64_t rows, int64_t cols) {
  if (cols <= 0) return;
  const bool sums_wanted = args.d_gain != nullptr || args.d_shift != nullptr;
  // At most 128 blocks, so that their sums stay small beside the rows.
  const int64_t block = std::max(rows_per_chunk(cols), (rows + 127) / 128);
  const int64_t blocks = (rows + block - 1) / block;
  // For each block: the sums for gain, then those for shift; padded to whole cache lines.
  const int64_t padded = (cols + 15) / 16 * 16;
  std::shared_ptr<void> memory;
  using Sum = Precise<T>;
  if (sums_wanted) memory = allocate_block(static_cast<size_t>(2 * padded * blocks) * sizeof(Sum));
  Sum* sums = static_cast<Sum*>(memory.get());
  parallel_ranges(rows, block, [&](int64_t begin, int64_t end) {
    if (!sums_wanted) return grad_rows(args, begin, end, cols, nullptr, nullptr);
    Sum* mine = sums + begin / block * 2 * padded;
    std::fill(mine, mine + 2 * padded, Sum(0));
    grad_rows(args, begin, end, cols, mine, mine + padded);
  });
  add_blocks(sums, 2 * padded, blocks, args.d_gain, args.add_d_gain, cols);
  add_blocks(sums + padded, 2 * padded, blocks, args.d_shift, args.add_d_shift, cols);
}

}  // namespace

void layer_norm_grad(const LayerNormGrads<float>& args, int64_t rows, int64_t cols) {
  grad(args, rows, cols);
}
void layer_norm_grad(const LayerNormGrads<double>& args, int64_t rows, int64_t cols) {
  grad(args, rows, cols);
}
void layer_norm_grad(const LayerNormGrads<bf16>& args, int64_t rows, int64_t cols) {
  grad(args, rows, cols);
}

}  // namespace rapt::kernels
#endif
