#include "rapt/kernels/elementwise.h"
#include "rapt/kernels/reference_elementwise.h"
#include "rapt/kernels/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rapt/kernels/activation.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "rapt/kernels/activation-inl.h"
#include "rapt/kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels::HWY_NAMESPACE {
namespace {

template <class T>
void ActivationRows(Activation kind, const T* x, int64_t ldx, T* y, int64_t ldy, int64_t rows,
                    int64_t cols) {
  WithActivation<T>(kind, [=](auto f) HWY_ATTR {
    for (int64_t i = 0; i < rows; ++i) MapRow(x + i * ldx, y + i * ldy, cols, f);
  });
}

template <class T>
void ActivationGradRows(Activation kind, const T* x, int64_t ldx, const T* dy, int64_t lddy, T* dx,
                        int64_t lddx, int64_t rows, int64_t cols) {
  WithActivation<T>(kind, [=](auto f) HWY_ATTR {
    for (int64_t i = 0; i < rows; ++i) {
      MapRow(x + i * ldx, dy + i * lddy, dx + i * lddx, cols, f);
    }
  });
}

constexpr auto& ActivationRowsF32 = ActivationRows<float>;
constexpr auto& ActivationRowsBf16 = ActivationRows<bf16>;
constexpr auto& ActivationGradRowsF32 = ActivationGradRows<float>;
constexpr auto& ActivationGradRowsBf16 = ActivationGradRows<bf16>;

}  // namespace
}  // namespace rapt::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rapt::kernels {
namespace {

HWY_EXPORT(ActivationRowsF32);
HWY_EXPORT(ActivationRowsBf16);
HWY_EXPORT(ActivationGradRowsF32);
HWY_EXPORT(ActivationGradRowsBf16);

// By pieces; f(kind, x, ldx, y, ldy, rows, cols).
template <class T, class F>
void map(Activation kind, const T* x, int64_t ldx, T* y, int64_t ldy, int64_t rows, int64_t cols,
         const F& f) {
  for_pieces(rows, cols, ldx == cols && ldy == cols, [&](const Piece& p) {
    f(kind, x + p.row * ldx + p.column, ldx, y + p.row * ldy + p.column, ldy, p.rows, p.cols);
  });
}

// By pieces; f(kind, x, ldx, dy, lddy, dx, lddx, rows, cols).
template <class T, class F>
void map_grad(Activation kind, const T* x, int64_t ldx, const T* dy, int64_t lddy, T* dx,
              int64_t lddx, int64_t rows, int64_t cols, const F& f) {
  const bool contiguous = ldx == cols && lddy == cols && lddx == cols;
  for_pieces(rows, cols, contiguous, [&](const Piece& p) {
    f(kind, x + p.row * ldx + p.column, ldx, dy + p.row * lddy + p.column, lddy,
      dx + p.row * lddx + p.column, lddx, p.rows, p.cols);
  });
}

}  // namespace

void activation(Activation kind, const float* x, int64_t ldx, float* y, int64_t ldy, int64_t rows,
                int64_t cols) {
  map(kind, x, ldx, y, ldy, rows, cols, HWY_DYNAMIC_DISPATCH(ActivationRowsF32));
}
void activation_grad(Activation kind, const float* x, int64_t ldx, const float* dy, int64_t lddy,
                     float* dx, int64_t lddx, int64_t rows, int64_t cols) {
  map_grad(kind, x, ldx, dy, lddy, dx, lddx, rows, cols,
           HWY_DYNAMIC_DISPATCH(ActivationGradRowsF32));
}

void activation(Activation kind, const double* x, int64_t ldx, double* y, int64_t ldy, int64_t rows,
                int64_t cols) {
  map(kind, x, ldx, y, ldy, rows, cols, reference::activation<double>);
}
void activation_grad(Activation kind, const double* x, int64_t ldx, const double* dy, int64_t lddy,
                     double* dx, int64_t lddx, int64_t rows, int64_t cols) {
  map_grad(kind, x, ldx, dy, lddy, dx, lddx, rows, cols, reference::activation_grad<double>);
}

void activation(Activation kind, const bf16* x, int64_t ldx, bf16* y, int64_t ldy, int64_t rows,
                int64_t cols) {
  map(kind, x, ldx, y, ldy, rows, cols, HWY_DYNAMIC_DISPATCH(ActivationRowsBf16));
}
void activation_grad(Activation kind, const bf16* x, int64_t ldx, const bf16* dy, int64_t lddy,
                     bf16* dx, int64_t lddx, int64_t rows, int64_t cols) {
  map_grad(kind, x, ldx, dy, lddy, dx, lddx, rows, cols,
           HWY_DYNAMIC_DISPATCH(ActivationGradRowsBf16));
}

}  // namespace rapt::kernels
#endif
