#include "rapt/kernels/elementwise.h"
#include "rapt/kernels/reference_elementwise.h"
#include "rapt/kernels/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rapt/kernels/activation_dropout.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "rapt/kernels/activation-inl.h"
#include "rapt/kernels/dropout-inl.h"
#include "rapt/kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels::HWY_NAMESPACE {
namespace {

template <class T>
void ForwardRows(const ActivationDropout& how, const T* x, int64_t ldx, T* y, int64_t ldy,
                 int64_t rows, int64_t cols) {
  WithActivation<T>(how.kind, [=, &how](auto f) HWY_ATTR {
    for (int64_t i = 0; i < rows; ++i) {
      const T* const from = x + i * ldx;
      T* const to = y + i * ldy;
      ForDropped(how.dropout, row_id(how.ids, i), 0, cols,
                 [=](auto d, int64_t j, int64_t count, auto drop) HWY_ATTR {
                   StoreUpTo(drop(f(d, LoadUpTo(d, from + j, count))), d, to + j, count);
                 });
    }
  });
}

// The dropped ones show in the result: no random number is drawn again.
template <class T>
void ReluGradRow(float scale, const T* y, const T* dy, T* dx, int64_t cols) {
  MapRow(y, dy, dx, cols, [scale](auto d, auto result, auto gradient) HWY_ATTR {
    return Relu<T>()(d, result, hn::Mul(gradient, hn::Set(d, scale)));
  });
}

// Also the result again, where `y` is not null.
template <class T, class F>
void GradRow(const Dropout& dropout, RowId id, const T* x, const T* dy, T* dx, T* y, int64_t cols,
             F f) {
  ForDropped(dropout, id, 0, cols, [=](auto d, int64_t j, int64_t count, auto drop) HWY_ATTR {
    hn::Vec<decltype(d)> value, slope;
    f.both(d, LoadUpTo(d, x + j, count), value, slope);
    const auto gradient = drop(LoadUpTo(d, dy + j, count));
    if (y != nullptr) StoreUpTo(drop(value), d, y + j, count);
    StoreUpTo(hn::Mul(gradient, slope), d, dx + j, count);
  });
}

template <class T>
void GradRows(const ActivationDropout& how, const T* kept, int64_t ld, const T* dy, int64_t lddy,
              T* dx, int64_t lddx, T* y, int64_t ldy, int64_t rows, int64_t cols) {
  const auto row = [&](auto f, int64_t i) HWY_ATTR {
    T* const again = y == nullptr ? nullptr : y + i * ldy;
    GradRow(how.dropout, row_id(how.ids, i), kept + i * ld, dy + i * lddy, dx + i * lddx, again,
            cols, f);
  };
  const auto scale = static_cast<float>(1 / (1 - how.dropout.probability));
  for (int64_t i = 0; i < rows; ++i) {
    switch (how.kind) {
      case Activation::relu:
        ReluGradRow(scale, kept + i * ld, dy + i * lddy, dx + i * lddx, cols);
        break;
      case Activation::gelu:
        row(Gelu<T>(), i);
        break;
      case Activation::gelu_tanh:
        row(GeluTanh<T>(), i);
        break;
    }
  }
}

constexpr auto& ForwardRowsF32 = ForwardRows<float>;
constexpr auto& ForwardRowsBf16 = ForwardRows<bf16>;
constexpr auto& GradRowsF32 = GradRows<float>;
constexpr auto& GradRowsBf16 = GradRows<bf16>;

}  // namespace
}  // namespace rapt::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rapt::kernels {
namespace {

HWY_EXPORT(ForwardRowsF32);
HWY_EXPORT(ForwardRowsBf16);
HWY_EXPORT(GradRowsF32);
HWY_EXPORT(GradRowsBf16);

ActivationDropout from_row(ActivationDropout how, int64_t row) {
  if (how.ids != nullptr) how.ids += row;
  return how;
}

template <class T, class F>
void forward(const ActivationDropout& how, const T* x, int64_t ldx, T* y, int64_t ldy, int64_t rows,
             int64_t cols, const F& f) {
  parallel_ranges(rows, rows_per_chunk(cols), [&](int64_t begin, int64_t end) {
    f(from_row(how, begin), x + begin * ldx, ldx, y + begin * ldy, ldy, end - begin, cols);
  });
}

template <class T, class F>
void gradient(const ActivationDropout& how, const T* kept, int64_t ld, const T* dy, int64_t lddy,
              T* dx, int64_t lddx, T* y, int64_t ldy, int64_t rows, int64_t cols, const F& f) {
  parallel_ranges(rows, rows_per_chunk(cols), [&](int64_t begin, int64_t end) {
    f(from_row(how, begin), kept + begin * ld, ld, dy + begin * lddy, lddy, dx + begin * lddx, lddx,
      y == nullptr ? nullptr : y + begin * ldy, ldy, end - begin, cols);
  });
}

}  // namespace

void activation_dropout(const ActivationDropout& how, const float* x, int64_t ldx, float* y,
                        int64_t ldy, int64_t rows, int64_t cols) {
  forward(how, x, ldx, y, ldy, rows, cols, HWY_DYNAMIC_DISPATCH(ForwardRowsF32));
}
void activation_dropout(const ActivationDropout& how, const double* x, int64_t ldx, double* y,
                        int64_t ldy, int64_t rows, int64_t cols) {
  forward(how, x, ldx, y, ldy, rows, cols, reference::activation_dropout<double>);
}
void activation_dropout(const ActivationDropout& how, const bf16* x, int64_t ldx, bf16* y,
                        int64_t ldy, int64_t rows, int64_t cols) {
  forward(how, x, ldx, y, ldy, rows, cols, HWY_DYNAMIC_DISPATCH(ForwardRowsBf16));
}

void activation_dropout_grad(const ActivationDropout& how, const float* kept, int64_t ld,
                             const float* dy, int64_t lddy, float* dx, int64_t lddx, float* y,
                             int64_t ldy, int64_t rows, int64_t cols) {
  gradient(how, kept, ld, dy, lddy, dx, lddx, y, ldy, rows, cols,
           HWY_DYNAMIC_DISPATCH(GradRowsF32));
}
void activation_dropout_grad(const ActivationDropout& how, const double* kept, int64_t ld,
                             const double* dy, int64_t lddy, double* dx, int64_t lddx, double* y,
                             int64_t ldy, int64_t rows, int64_t cols) {
  gradient(how, kept, ld, dy, lddy, dx, lddx, y, ldy, rows, cols,
           reference::activation_dropout_grad<double>);
}
void activation_dropout_grad(const ActivationDropout& how, const bf16* kept, int64_t ld,
                             const bf16* dy, int64_t lddy, bf16* dx, int64_t lddx, bf16* y,
                             int64_t ldy, int64_t rows, int64_t cols) {
  gradient(how, kept, ld, dy, lddy, dx, lddx, y, ldy, rows, cols,
           HWY_DYNAMIC_DISPATCH(GradRowsBf16));
}

}  // namespace rapt::kernels
#endif
