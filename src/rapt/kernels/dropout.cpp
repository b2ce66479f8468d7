#include "rapt/kernels/elementwise.h"
#include "rapt/kernels/reference_elementwise.h"
#include "rapt/kernels/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rapt/kernels/dropout.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "rapt/kernels/dropout-inl.h"
#include "rapt/kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels::HWY_NAMESPACE {
namespace {

template <class T>
void DropoutRows(const Dropout& spec, const RowId* ids, const T* x, int64_t ldx, T* y, int64_t ldy,
                 int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows; ++i, x += ldx, y += ldy) {
    ForDropped(spec, row_id(ids, i), 0, cols,
               [=](auto d, int64_t j, int64_t count, auto drop)
                   HWY_ATTR { StoreUpTo(drop(LoadUpTo(d, x + j, count)), d, y + j, count); });
  }
}

constexpr auto& DropoutRowsF32 = DropoutRows<float>;
constexpr auto& DropoutRowsBf16 = DropoutRows<bf16>;

}  // namespace
}  // namespace rapt::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rapt::kernels {
namespace {

HWY_EXPORT(DropoutRowsF32);
HWY_EXPORT(DropoutRowsBf16);

template <class T, class F>
void drop(const Dropout& spec, const RowId* ids, const T* x, int64_t ldx, T* y, int64_t ldy,
          int64_t rows, int64_t cols, const F& f) {
  if (spec.probability <= 0 && x == y && ldx == ldy) return;
  parallel_ranges(rows, rows_per_chunk(cols), [&](int64_t begin, int64_t end) {
    f(spec, ids == nullptr ? nullptr : ids + begin, x + begin * ldx, ldx, y + begin * ldy, ldy,
      end - begin, cols);
  });
}

}  // namespace

void dropout(const Dropout& spec, const RowId* ids, const float* x, int64_t ldx, float* y,
             int64_t ldy, int64_t rows, int64_t cols) {
  drop(spec, ids, x, ldx, y, ldy, rows, cols, HWY_DYNAMIC_DISPATCH(DropoutRowsF32));
}
void dropout(const Dropout& spec, const RowId* ids, const double* x, int64_t ldx, double* y,
             int64_t ldy, int64_t rows, int64_t cols) {
  drop(spec, ids, x, ldx, y, ldy, rows, cols, reference::dropout<double>);
}
void dropout(const Dropout& spec, const RowId* ids, const bf16* x, int64_t ldx, bf16* y,
             int64_t ldy, int64_t rows, int64_t cols) {
  drop(spec, ids, x, ldx, y, ldy, rows, cols, HWY_DYNAMIC_DISPATCH(DropoutRowsBf16));
}

}  // namespace rapt::kernels
#endif
