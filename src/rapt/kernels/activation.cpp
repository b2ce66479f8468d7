#include "rapt/kernels/elementwise.h"
#include "rapt/kernels/reference_elementwise.h"
#include "rapt/kernels/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rapt/kernels/activation.cpp"
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
    return Relu<T>::Gradient(d, result, hn::Mul(gradient, hn::Set(d, scale)));
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
  const auto scale = static_cast<float>(1 / (1 - how.dropout.probability));
  WithActivation<T>(how.kind, [=, &how](auto f) HWY_ATTR {
    for (int64_t i = 0; i < rows; ++i) {
      const T *const in = kept + i * ld, *const gradient = dy + i * lddy;
      if constexpr (std::is_same_v<decltype(f), Relu<T>>) {
        ReluGradRow(scale, in, gradient, dx + i * lddx, cols);
      } else {
        GradRow(how.dropout, row_id(how.ids, i), in, gradient, dx + i * lddx,
                y == nullptr ? nullptr : y + i * ldy, cols, f);
      }
    }
  });
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

// By pieces: dropout takes whole rows.
template <class Body>
void for_activation_pieces(const ActivationDropout& how, int64_t rows, int64_t cols,
                           bool contiguous, const Body& body) {
  if (how.dropout.probability <= 0) return for_pieces(rows, cols, contiguous, body);
  parallel_ranges(rows, rows_per_chunk(cols), [&](int64_t begin, int64_t end) {
    body(Piece{begin, end - begin, 0, cols});
  });
}

template <class T, class F>
void forward(const ActivationDropout& how, const T* x, int64_t ldx, T* y, int64_t ldy, int64_t rows,
             int64_t cols, const F& f) {
  for_activation_pieces(how, rows, cols, ldx == cols && ldy == cols, [&](const Piece& p) {
    f(from_row(how, p.row), x + p.row * ldx + p.column, ldx, y + p.row * ldy + p.column, ldy,
      p.rows, p.cols);
  });
}

template <class T, class F>
void gradient(const ActivationDropout& how, const T* kept, int64_t ld, const T* dy, int64_t lddy,
              T* dx, int64_t lddx, T* y, int64_t ldy, int64_t rows, int64_t cols, const F& f) {
  const bool contiguous =
      ld == cols && lddy == cols && lddx == cols && (y == nullptr || ldy == cols);
  for_activation_pieces(how, rows, cols, contiguous, [&](const Piece& p) {
    f(from_row(how, p.row), kept + p.row * ld + p.column, ld, dy + p.row * lddy + p.column, lddy,
      dx + p.row * lddx + p.column, lddx, y == nullptr ? nullptr : y + p.row * ldy + p.column, ldy,
      p.rows, p.cols);
  });
}

// Without dropout.
template <class T>
void plain(Activation kind, const T* x, int64_t ldx, T* y, int64_t ldy, int64_t rows,
           int64_t cols) {
  activation_dropout({kind, {}}, x, ldx, y, ldy, rows, cols);
}
template <class T>
void plain_grad(Activation kind, const T* x, int64_t ldx, const T* dy, int64_t lddy, T* dx,
                int64_t lddx, int64_t rows, int64_t cols) {
  activation_dropout_grad({kind, {}}, x, ldx, dy, lddy, dx, lddx, static_cast<T*>(nullptr), 0, rows,
                          cols);
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

void activation(Activation kind, const float* x, int64_t ldx, float* y, int64_t ldy, int64_t rows,
                int64_t cols) {
  plain(kind, x, ldx, y, ldy, rows, cols);
}
void activation_grad(Activation kind, const float* x, int64_t ldx, const float* dy, int64_t lddy,
                     float* dx, int64_t lddx, int64_t rows, int64_t cols) {
  plain_grad(kind, x, ldx, dy, lddy, dx, lddx, rows, cols);
}
void activation(Activation kind, const double* x, int64_t ldx, double* y, int64_t ldy, int64_t rows,
                int64_t cols) {
  plain(kind, x, ldx, y, ldy, rows, cols);
}
void activation_grad(Activation kind, const double* x, int64_t ldx, const double* dy, int64_t lddy,
                     double* dx, int64_t lddx, int64_t rows, int64_t cols) {
  plain_grad(kind, x, ldx, dy, lddy, dx, lddx, rows, cols);
}
void activation(Activation kind, const bf16* x, int64_t ldx, bf16* y, int64_t ldy, int64_t rows,
                int64_t cols) {
  plain(kind, x, ldx, y, ldy, rows, cols);
}
void activation_grad(Activation kind, const bf16* x, int64_t ldx, const bf16* dy, int64_t lddy,
                     bf16* dx, int64_t lddx, int64_t rows, int64_t cols) {
  plain_grad(kind, x, ldx, dy, lddy, dx, lddx, rows, cols);
}

}  // namespace rapt::kernels
#endif
