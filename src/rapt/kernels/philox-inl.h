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

// Words 0 to 3 of the counters (block + lane, position, sample).
template <class D, class V = hn::Vec<D>>
HWY_INLINE void Philox(D d, uint32_t block, uint32_t position, uint64_t sample, PhiloxKey key,
                       V& w0, V& w1, V& w2, V& w3) {
  const uint32_t low = static_cast<uint32_t>(sample), high = static_cast<uint32_t>(sample >> 32);
#if HWY_TARGET == HWY_SCALAR  // one lane has no neighbour to multiply with
  const PhiloxCounter words = philox({block, position, low, high}, key);
  w0 = hn::Set(d, words[0]);
  w1 = hn::Set(d, words[1]);
  w2 = hn::Set(d, words[2]);
  w3 = hn::Set(d, words[3]);
#else
  // Even and odd counters run apart, each number in the lower half of 64 bits: a product then has
  // its two halves side by side. What is left in the upper halves no product reads.
  const hn::RepartitionToWide<D> wide;
  const V m0 = hn::Set(d, 0xD2511F53u), m1 = hn::Set(d, 0xCD9E8D57u);
  V even0 = hn::Add(hn::Iota(d, 0), hn::Set(d, block));  // Iota(d, block) would go through memory
  V odd0 = hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, even0)));
  V even1 = hn::Set(d, position), even2 = hn::Set(d, low), even3 = hn::Set(d, high);
  V odd1 = even1, odd2 = even2, odd3 = even3;
  const auto one_round = [&](V& c0, V& c1, V& c2, V& c3, V k0, V k1) HWY_ATTR {
    const auto a = hn::MulEven(c0, m0), b = hn::MulEven(c2, m1);
    c0 = hn::Xor3(hn::Shuffle2301(hn::BitCast(d, b)), c1, k0);
    c2 = hn::Xor3(hn::Shuffle2301(hn::BitCast(d, a)), c3, k1);
    c1 = hn::BitCast(d, b);
    c3 = hn::BitCast(d, a);
  };
  for (int round = 0; round < 10; ++round) {
    const V k0 = hn::Set(d, key[0]), k1 = hn::Set(d, key[1]);
    one_round(even0, even1, even2, even3, k0, k1);
    one_round(odd0, odd1, odd2, odd3, k0, k1);
    key = {key[0] + 0x9E3779B9u, key[1] + 0xBB67AE85u};
  }
  const auto join = [&](V odd, V even) HWY_ATTR {
    return hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(hn::BitCast(wide, odd))), even);
  };
  w0 = join(odd0, even0);
  w1 = join(odd1, even1);
  w2 = join(odd2, even2);
  w3 = join(odd3, even3);
#endif
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
