#include "rapt/kernels/activated_product.h"

#include "rapt/kernels/matmul_bf16_tiles.h"

namespace rapt::kernels {
namespace {

template <class T>
void one_after_the_other(const ActivationDropout& how, const T* x, int64_t ldx, const T* w,
                         int64_t ldw, const Precise<T>* bias, T* before, T* y, int64_t M, int64_t N,
                         int64_t K, RowPolicy policy) {
  T* const h = before == nullptr ? y : before;
  linear(x, ldx, w, ldw, bias, h, N, M, N, K, policy);
  activation_dropout(how, h, N, y, N, M, N);
}

template <class T>
void one_after_the_other(const ActivationDropout& how, const T* dy, int64_t lddy, const T* w,
                         int64_t ldw, const T* kept, T* dh, T* y, int64_t M, int64_t N, int64_t K) {
  linear_dx(dy, lddy, w, ldw, dh, K, M, N, K, false);
  activation_dropout_grad(how, kept, K, dh, K, dh, K, y, K, M, K);
}

// Random numbers of dropout are drawn along whole rows, which tiles do not have.
bool ends_tiles(const ActivationDropout& how, int64_t rows, int64_t cols, int64_t inner) {
  return how.dropout.probability <= 0 && cols > 0 && inner > 0 && inner <= kActivatedMost &&
         takes_tiles(rows);
}

}  // namespace

void linear_activated(const ActivationDropout& how, const float* x, int64_t ldx, const float* w,
                      int64_t ldw, const float* bias, float* before, float* y, int64_t M, int64_t N,
                      int64_t K, RowPolicy policy) {
  one_after_the_other(how, x, ldx, w, ldw, bias, before, y, M, N, K, policy);
}
void linear_activated(const ActivationDropout& how, const double* x, int64_t ldx, const double* w,
                      int64_t ldw, const double* bias, double* before, double* y, int64_t M,
                      int64_t N, int64_t K, RowPolicy policy) {
  one_after_the_other(how, x, ldx, w, ldw, bias, before, y, M, N, K, policy);
}
void linear_activated(const ActivationDropout& how, const bf16* x, int64_t ldx, const bf16* w,
                      int64_t ldw, const float* bias, bf16* before, bf16* y, int64_t M, int64_t N,
                      int64_t K, RowPolicy policy) {
  if (policy != RowPolicy::fast || !ends_tiles(how, M, N, K))
    return one_after_the_other(how, x, ldx, w, ldw, bias, before, y, M, N, K, policy);
  tile_row_product(linear_rows(x, ldx, w, ldw, bias, before, N, K), {.f = how.kind, .result = y}, M,
                   N);
}

void linear_dx_activated(const ActivationDropout& how, const float* dy, int64_t lddy,
                         const float* w, int64_t ldw, const float* kept, float* dh, float* y,
                         int64_t M, int64_t N, int64_t K) {
  one_after_the_other(how, dy, lddy, w, ldw, kept, dh, y, M, N, K);
}
void linear_dx_activated(const ActivationDropout& how, const double* dy, int64_t lddy,
                         const double* w, int64_t ldw, const double* kept, double* dh, double* y,
                         int64_t M, int64_t N, int64_t K) {
  one_after_the_other(how, dy, lddy, w, ldw, kept, dh, y, M, N, K);
}
void linear_dx_activated(const ActivationDropout& how, const bf16* dy, int64_t lddy, const bf16* w,
                         int64_t ldw, const bf16* kept, bf16* dh, bf16* y, int64_t M, int64_t N,
                         int64_t K) {
  if (!ends_tiles(how, M, K, N))
    return one_after_the_other(how, dy, lddy, w, ldw, kept, dh, y, M, N, K);
  tile_row_product(dx_rows(dy, lddy, w, ldw, dh, K, N, false),
                   {.f = how.kind, .gradient = true, .kept = kept, .result = y}, M, K);
}

}  // namespace rapt::kernels
