// Philox 4x32-10 on vectors, per target. Included once per target by kernels that drop elements.
#if defined(RAPT_KERNELS_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RAPT_KERNELS_PHILOX_INL_H_
#undef RAPT_KERNELS_PHILOX_INL_H_
#else
#define RAPT_KERNELS_PHILOX_INL_H_
#endif

#include <hwy/highway.h>

#include "rapt/base/random.h"

HWY_BEFORE_NAMESPACE();
namespace rapt::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// High and low halves of the products of 32-bit lanes.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void MulWide(D d, V a, V b, V& high, V& low) {
#if HWY_TARGET == HWY_SCALAR  // one lane has no odd neighbour
  const uint64_t product = uint64_t{hn::GetLane(a)} * hn::GetLane(b);
  high = hn::Set(d, static_cast<uint32_t>(product >> 32));
  low = hn::Set(d, static_cast<uint32_t>(product));
#else
  const hn::RepartitionToWide<D> d64;
  const auto even = hn::MulEven(a, b);
  const auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(d64, a))),
                               hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(d64, b))));
  high = hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even)));
  low = hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even));
#endif
}

// Words 0 to 3 of the counters (block + lane, position, sample).
template <class D, class V = hn::Vec<D>>
HWY_INLINE void Philox(D d, uint32_t block, uint32_t position, uint64_t sample, PhiloxKey key,
                       V& w0, V& w1, V& w2, V& w3) {
  V c0 = hn::Iota(d, block), c1 = hn::Set(d, position);
  V c2 = hn::Set(d, static_cast<uint32_t>(sample)),
    c3 = hn::Set(d, static_cast<uint32_t>(sample >> 32));
  const V m0 = hn::Set(d, 0xD2511F53u), m1 = hn::Set(d, 0xCD9E8D57u);
  uint32_t k0 = key[0], k1 = key[1];
  for (int round = 0; round < 10; ++round) {
    V high0, low0, high1, low1;
    MulWide(d, c0, m0, high0, low0);
    MulWide(d, c2, m1, high1, low1);
    c0 = hn::Xor(hn::Xor(high1, c1), hn::Set(d, k0));
    c1 = low1;
    c2 = hn::Xor(hn::Xor(high0, c3), hn::Set(d, k1));
    c3 = low0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  w0 = c0;
  w1 = c1;
  w2 = c2;
  w3 = c3;
}

// The deciding words of channels [64 group, 64 group + 64) of a row, in order.
HWY_INLINE void PhiloxGroup(uint32_t group, uint32_t position, uint64_t sample, PhiloxKey key,
                            uint32_t* HWY_RESTRICT words) {
  const hn::CappedTag<uint32_t, 16> d;
  const size_t lanes = hn::Lanes(d);
  for (size_t part = 0; part < 16; part += lanes) {
    hn::Vec<decltype(d)> w0, w1, w2, w3;
    Philox(d, group * 16 + static_cast<uint32_t>(part), position, sample, key, w0, w1, w2, w3);
    hn::StoreU(w0, d, words + part);
    hn::StoreU(w1, d, words + part + 16);
    hn::StoreU(w2, d, words + part + 32);
    hn::StoreU(w3, d, words + part + 48);
  }
}

}  // namespace rapt::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
