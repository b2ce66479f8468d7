// bf16 to and from vectors of f32.
#if defined(RAPT_KERNELS_BF16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_KERNELS_BF16_INL_H_
#undef RAPT_KERNELS_BF16_INL_H_
#else
#define RAPT_KERNELS_BF16_INL_H_
#endif

#include <hwy/highway.h>

#include "rapt/kernels/types.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE hn::Vec<D> LoadBf16(D d, const uint16_t* p) {
  const hn::RebindToUnsigned<D> d32;
  const hn::Rebind<uint16_t, D> d16;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d32, hn::LoadU(d16, p))));
}
template <class D>
HWY_INLINE hn::Vec<D> LoadBf16(D d, const bf16* p) {
  return LoadBf16(d, reinterpret_cast<const uint16_t*>(p));
}

// Rounds to nearest even and keeps NaN, as the constructor of bf16 does.
template <class D>
HWY_INLINE hn::Vec<hn::Rebind<uint16_t, D>> RoundToBf16(D /*d*/, hn::Vec<D> v) {
  const hn::RebindToUnsigned<D> d32;
  const hn::RebindToSigned<D> di;
  const hn::Rebind<uint16_t, D> d16;
  const auto word = hn::BitCast(d32, v);
  const auto odd = hn::And(hn::ShiftRight<16>(word), hn::Set(d32, 1u));
  const auto rounded = hn::Add(hn::Add(word, hn::Set(d32, 0x7FFFu)), odd);
  const auto quiet = hn::Or(word, hn::Set(d32, 0x00400000u));
  const auto number = hn::RebindMask(d32, hn::Eq(v, v));
  const auto upper = hn::ShiftRight<16>(hn::IfThenElse(number, rounded, quiet));
  return hn::DemoteTo(d16, hn::BitCast(di, upper));
}
template <class D>
HWY_INLINE void StoreBf16(D d, hn::Vec<D> v, uint16_t* p) {
  const hn::Rebind<uint16_t, D> d16;
  hn::StoreU(RoundToBf16(d, v), d16, p);
}
// Past the caches; p is aligned to the vector.
template <class D>
HWY_INLINE void StreamBf16(D d, hn::Vec<D> v, bf16* p) {
  const hn::Rebind<uint16_t, D> d16;
  hn::Stream(RoundToBf16(d, v), d16, reinterpret_cast<uint16_t*>(p));
}
template <class D>
HWY_INLINE void StoreBf16(D d, hn::Vec<D> v, bf16* p) {
  StoreBf16(d, v, reinterpret_cast<uint16_t*>(p));
}

}  // namespace rapt::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
