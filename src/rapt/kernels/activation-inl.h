// Activations and their gradients on vectors.
#if defined(RAPT_KERNELS_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_KERNELS_ACTIVATION_INL_H_
#undef RAPT_KERNELS_ACTIVATION_INL_H_
#else
#define RAPT_KERNELS_ACTIVATION_INL_H_
#endif

#include <hwy/highway.h>

#include <type_traits>

#include "rapt/kernels/elementwise.h"
#include "rapt/kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A function gives its value, operator()(d, x); Relu also a gradient, the others their slope beside
// the value, both(d, x, value, slope). A NaN comes out as NaN. T is what the results are stored as.
template <class T>
struct Relu {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x);
  }
  // That of x from dy; the result serves for x.
  template <class D, class V>
  static HWY_INLINE V Gradient(D d, V x, V dy) {
    return hn::IfThenZeroElse(hn::Le(x, hn::Zero(d)), dy);
  }
};

// A function whose value comes with its slope.
template <class Function>
struct FromBoth {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    V value, slope;
    static_cast<const Function&>(*this).both(d, x, value, slope);
    return value;
  }
};

template <class T>
struct Gelu : FromBoth<Gelu<T>> {
  template <class D, class V>
  HWY_INLINE void both(D d, V x, V& value, V& slope) const {
    V cumulative, density;
    if constexpr (std::is_same_v<T, bf16>) {
      RoughNormal(d, x, cumulative, density);
    } else {
      Normal(d, x, cumulative, density);
    }
    value = hn::Mul(x, cumulative);
    slope = hn::MulAdd(x, density, cumulative);
  }
};

template <class T>
struct GeluTanh : FromBoth<GeluTanh<T>> {
  template <class D, class V>
  HWY_INLINE void both(D d, V x, V& value, V& slope) const {
    const V square = hn::Mul(x, x);
    const V inner = hn::Mul(x, hn::MulAdd(square, hn::Set(d, kGeluTanhB), hn::Set(d, kGeluTanhA)));
    const V inner_grad = hn::MulAdd(square, hn::Set(d, 3 * kGeluTanhB), hn::Set(d, kGeluTanhA));
    V logistic, logistic_slope;
    if constexpr (std::is_same_v<T, bf16>) {
      RoughLogistic(d, inner, logistic, logistic_slope);
    } else {
      Logistic(d, inner, logistic, logistic_slope);
    }
    value = hn::Mul(x, logistic);
    slope = hn::MulAdd(x, hn::Mul(logistic_slope, inner_grad), logistic);
  }
};

// Calls f with the function of that name.
template <class T, class F>
HWY_INLINE void WithActivation(Activation kind, const F& f) {
  switch (kind) {
    case Activation::relu:
      return f(Relu<T>());
    case Activation::gelu:
      return f(Gelu<T>());
    case Activation::gelu_tanh:
      return f(GeluTanh<T>());
  }
}

}  // namespace rapt::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
