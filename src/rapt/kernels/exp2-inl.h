// Powers of two on vectors, per target: what softmax spends its time on besides the products.
#if defined(RAPT_KERNELS_EXP2_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_KERNELS_EXP2_INL_H_
#undef RAPT_KERNELS_EXP2_INL_H_
#else
#define RAPT_KERNELS_EXP2_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <type_traits>

#include "rapt/kernels/exp2_terms.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D, size_t kTerms, class V = hn::Vec<D>>
HWY_INLINE V polynomial(D d, V x, const hn::TFromD<D> (&terms)[kTerms]) {
  V y = hn::Set(d, terms[kTerms - 1]);
  for (size_t i = kTerms - 1; i-- > 0;) y = hn::MulAdd(y, x, hn::Set(d, terms[i]));
  return y;
}

// 2^x to about one ulp for x up to the largest exponent. 2^0 is exactly 1; results below the least
// normal number, minus infinity's among them, are zero; NaN stays.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp2(D d, V x) {
  using T = hn::TFromD<D>;
  constexpr bool kSingle = std::is_same_v<T, float>;
  constexpr int kMantissa = kSingle ? 23 : 52;
  const hn::RebindToUnsigned<D> bits;
  // Adding 1.5 * 2^mantissa rounds to an integer and leaves it in the lowest bits.
  const V shift = hn::Set(d, kSingle ? T(0x1.8p23) : T(0x1.8p52));
  const V shifted = hn::Add(x, shift);
  const V r = hn::Sub(x, hn::Sub(shifted, shift));
  V y;
  if constexpr (kSingle) {
    y = polynomial(d, r, kExp2Single);
  } else {
    y = polynomial(d, r, kExp2Double);
  }
  y = hn::MulAdd(y, r, hn::Set(d, T(1)));
  const V scaled = hn::BitCast(
      d, hn::Add(hn::BitCast(bits, y), hn::ShiftLeft<kMantissa>(hn::BitCast(bits, shifted))));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, kSingle ? T(-126) : T(-1022))), scaled);
}

}  // namespace rapt::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
