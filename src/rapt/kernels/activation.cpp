#include "rapt/kernels/elementwise.h"
#include "rapt/kernels/reference_elementwise.h"
#include "rapt/kernels/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rapt/kernels/activation.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "rapt/kernels/rows-inl.h"
#include "rapt/kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels::HWY_NAMESPACE {
namespace {

// Each function has its value, operator()(d, x), and its gradient, operator()(d, x, dy). A NaN
// comes out as NaN.
struct Relu {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x);
  }
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V dy) const {
    return hn::IfThenZeroElse(hn::Le(x, hn::Zero(d)), dy);
  }
};

struct Gelu {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    V cumulative, density;
    Normal(d, x, cumulative, density);
    return hn::Mul(x, cumulative);
  }
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V dy) const {
    V cumulative, density;
    Normal(d, x, cumulative, density);
    return hn::Mul(dy, hn::MulAdd(x, density, cumulative));
  }
};

// (1 + tanh u) / 2 is the logistic function of 2 u; 2 u = x (a + b x^2).
struct GeluTanh {
  static constexpr float kA = 1.595769122f, kB = 0.0713548163f;

  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const V inner = hn::Mul(x, hn::MulAdd(hn::Mul(x, x), hn::Set(d, kB), hn::Set(d, kA)));
    V value, slope;
    Logistic(d, inner, value, slope);
    return hn::Mul(x, value);
  }
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V dy) const {
    const V square = hn::Mul(x, x);
    const V inner = hn::Mul(x, hn::MulAdd(square, hn::Set(d, kB), hn::Set(d, kA)));
    const V inner_grad = hn::MulAdd(square, hn::Set(d, 3 * kB), hn::Set(d, kA));
    V value, slope;
    Logistic(d, inner, value, slope);
    return hn::Mul(dy, hn::MulAdd(x, hn::Mul(slope, inner_grad), value));
  }
};

template <class T>
void ActivationRows(Activation kind, const T* x, int64_t ldx, T* y, int64_t ldy, int64_t rows,
                    int64_t cols) {
  for (int64_t i = 0; i < rows; ++i, x += ldx, y += ldy) {
    switch (kind) {
      case Activation::relu:
        MapRow(x, y, cols, Relu());
        break;
      case Activation::gelu:
        MapRow(x, y, cols, Gelu());
        break;
      case Activation::gelu_tanh:
        MapRow(x, y, cols, GeluTanh());
        break;
    }
  }
}

template <class T>
void ActivationGradRows(Activation kind, const T* x, int64_t ldx, const T* dy, int64_t lddy, T* dx,
                        int64_t lddx, int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows; ++i, x += ldx, dy += lddy, dx += lddx) {
    switch (kind) {
      case Activation::relu:
        MapRow(x, dy, dx, cols, Relu());
        break;
      case Activation::gelu:
        MapRow(x, dy, dx, cols, Gelu());
        break;
      case Activation::gelu_tanh:
        MapRow(x, dy, dx, cols, GeluTanh());
        break;
    }
  }
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
