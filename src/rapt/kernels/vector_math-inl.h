// Elementary functions on vectors of f32. The polynomials are minimax fits made for this file.
#if defined(RAPT_KERNELS_VECTOR_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_KERNELS_VECTOR_MATH_INL_H_
#undef RAPT_KERNELS_VECTOR_MATH_INL_H_
#else
#define RAPT_KERNELS_VECTOR_MATH_INL_H_
#endif

#include <hwy/highway.h>

#include <limits>

#include "rapt/kernels/rough_terms.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// exp(x), within 2 ulp. exp(0) is exactly 1, exp(-infinity) 0, exp(NaN) NaN; results below the
// smallest normal number are 0.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Exp(D d, V x) {
  const hn::RebindToSigned<D> di;
  // x = n ln 2 + r with |r| <= ln(2) / 2. Adding 1.5 * 2^23 rounds to the integer n, which then
  // stands in the low bits.
  const V magic = hn::Set(d, 12582912.0f);
  const V rounded = hn::MulAdd(x, hn::Set(d, 1.44269504f), magic);
  const V n = hn::Sub(rounded, magic);
  V r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x);  // ln 2 in two parts, the first exact
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
  // exp(r) = 1 + r + r^2 q(r), relative error 3e-9 before rounding.
  V q = hn::MulAdd(hn::Set(d, 0.001381461703f), r, hn::Set(d, 0.008368710101f));
  q = hn::MulAdd(q, r, hn::Set(d, 0.04166838731f));
  q = hn::MulAdd(q, r, hn::Set(d, 0.1666652069f));
  q = hn::MulAdd(q, r, hn::Set(d, 0.4999999345f));
  const V p = hn::Add(hn::MulAdd(hn::Mul(r, r), q, r), hn::Set(d, 1.0f));
  // Times 2^n: n is added to the exponent. Between the two bounds the result is a normal number.
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(di, rounded));
  const V y = hn::BitCast(d, hn::Add(hn::BitCast(di, p), exponent));
  const V large = hn::IfThenElse(hn::Gt(x, hn::Set(d, 88.7228f)),
                                 hn::Set(d, std::numeric_limits<float>::infinity()), y);
  const V all = hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.3365f)), large);
  return hn::IfThenElse(hn::Eq(x, x), all, x);
}

// The logistic function 1 / (1 + exp(-x)) and its derivative, both with full relative accuracy on
// both sides.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void Logistic(D d, V x, V& value, V& slope) {
  const V one = hn::Set(d, 1.0f);
  const V e = Exp(d, hn::Neg(hn::Abs(x)));
  const V right = hn::Div(one, hn::Add(one, e)), left = hn::Mul(e, right);
  value = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), left, right);
  slope = hn::Mul(left, right);
}

// The normal distribution: its density, and the probability (1 + erf(x / sqrt 2)) / 2 of values up
// to x. Absolute error below 1.5e-7; on the left side the error is also small relative to the
// result (4e-7 near 0, 1e-6 at -5).
template <class D, class V = hn::Vec<D>>
HWY_INLINE void Normal(D d, V x, V& cumulative, V& density) {
  const V one = hn::Set(d, 1.0f);
  const V z = hn::Abs(x);
  const V e = Exp(d, hn::Mul(hn::Mul(z, z), hn::Set(d, -0.5f)));
  density = hn::Mul(e, hn::Set(d, 0.398942280f));
  // exp(z^2 / 2) times the tail beyond z is smooth in t = 1 / (1 + 0.35 z): t times a polynomial,
  // relative error 3e-8 for z up to 14, where the tail underflows.
  const V t = hn::Div(one, hn::MulAdd(z, hn::Set(d, 0.35f), one));
  V p = hn::MulAdd(hn::Set(d, -0.02914587776f), t, hn::Set(d, 0.1439714679f));
  p = hn::MulAdd(p, t, hn::Set(d, -0.2557138332f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.1591737405f));
  p = hn::MulAdd(p, t, hn::Set(d, -0.02310958681f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.105507915f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.1198328865f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.1398618675f));
  p = hn::MulAdd(p, t, hn::Set(d, 0.1396214044f));
  const V tail = hn::Mul(e, hn::Mul(t, p));
  cumulative = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(one, tail));
}

// What follows is for results that are rounded to bf16: relative errors below 1e-4, a twentieth of
// what that rounding leaves.

// 1 / x for normal numbers.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V RoughReciprocal(D d, V x) {
  const V y = hn::ApproximateReciprocal(x);
  return hn::Mul(y, hn::NegMulAdd(x, y, hn::Set(d, 2.0f)));
}

// 2^x for x from -126 to 127.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V RoughExp2(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V magic = hn::Set(d, 12582912.0f);  // as in Exp
  const V rounded = hn::Add(x, magic);
  const V r = hn::Sub(x, hn::Sub(rounded, magic));
  V p = hn::Set(d, kRoughExp2[4]);
  for (int i = 3; i >= 0; --i) p = hn::MulAdd(p, r, hn::Set(d, kRoughExp2[i]));
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(di, rounded));
  return hn::BitCast(d, hn::Add(hn::BitCast(di, p), exponent));
}

// As Logistic; NaN may come out as a number.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void RoughLogistic(D d, V x, V& value, V& slope) {
  const V one = hn::Set(d, 1.0f), least = hn::Set(d, -126.0f);
  const V power = hn::Max(hn::Mul(hn::Abs(x), hn::Set(d, -kLog2E)), least);
  const V e = hn::IfThenZeroElse(hn::Le(power, least), RoughExp2(d, power));
  const V right = RoughReciprocal(d, hn::Add(one, e)), left = hn::Mul(e, right);
  value = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), left, right);
  slope = hn::Mul(left, right);
}

// As Normal; NaN may come out as a number.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void RoughNormal(D d, V x, V& cumulative, V& density) {
  const V one = hn::Set(d, 1.0f), least = hn::Set(d, -126.0f);
  const V z = hn::Abs(x);
  const V power = hn::Max(hn::Mul(hn::Mul(z, z), hn::Set(d, kRoughHalfSquare)), least);
  const V e = hn::IfThenZeroElse(hn::Le(power, least), RoughExp2(d, power));
  density = hn::Mul(e, hn::Set(d, kNormalDensity));
  const V t = RoughReciprocal(d, hn::MulAdd(z, hn::Set(d, kRoughTailRate), one));
  V p = hn::Set(d, kRoughTail[4]);
  for (int i = 3; i >= 0; --i) p = hn::MulAdd(p, t, hn::Set(d, kRoughTail[i]));
  const V tail = hn::Mul(e, hn::Mul(t, p));
  cumulative = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(one, tail));
}

}  // namespace rapt::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
