// What becomes of the sums of a product on tiles: row by row of a block of 32 columns, while the
// tiles multiply the next. For the sources of x86/.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "rapt/kernels/rough_terms.h"
#include "rapt/kernels/x86/bf16_tiles.h"
#include "rapt/kernels/x86/tiles.h"

#define RAPT_TILE_ENDS_TARGET RAPT_BF16_TARGET, gnu::always_inline

namespace rapt::kernels::x86 {

// 32 numbers side by side.
struct Row32 {
  __m512 first, second;
};

[[RAPT_TILE_ENDS_TARGET]] inline uint32_t mask_of(int64_t cols) {
  return static_cast<uint32_t>((uint64_t{1} << cols) - 1);
}

[[RAPT_TILE_ENDS_TARGET]] inline Row32 load_sums(const float* sums) {
  return {_mm512_load_ps(sums), _mm512_load_ps(sums + kTile)};
}

[[RAPT_TILE_ENDS_TARGET]] inline __m512i rounded(const Row32& v) {
  return (__m512i)_mm512_cvtne2ps_pbh(v.second, v.first);
}

[[RAPT_TILE_ENDS_TARGET]] inline __m512 widened(__m256i half) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}
[[RAPT_TILE_ENDS_TARGET]] inline Row32 widened(__m512i v) {
  return {widened(_mm512_castsi512_si256(v)), widened(_mm512_extracti64x4_epi64(v, 1))};
}

[[RAPT_TILE_ENDS_TARGET]] inline Row32 load_bf16(const bf16* from, int64_t cols) {
  return widened(_mm512_maskz_loadu_epi16(mask_of(cols), from));
}

// Past the caches where `stream` says so and the line is whole.
[[RAPT_TILE_ENDS_TARGET]] inline void store_bf16(__m512i v, bf16* to, int64_t cols, bool stream) {
  if (stream && cols == kPanel) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), v);
  } else {
    _mm512_mask_storeu_epi16(to, mask_of(cols), v);
  }
}

// The functions of vector_math-inl.h for results in bf16, on AVX-512.

[[RAPT_TILE_ENDS_TARGET]] inline __m512 rough_reciprocal(__m512 x) {
  const __m512 y = _mm512_rcp14_ps(x);
  return _mm512_mul_ps(y, _mm512_fnmadd_ps(x, y, _mm512_set1_ps(2.0f)));
}

// 2^x, and 0 for x up to -126.
[[RAPT_TILE_ENDS_TARGET]] inline __m512 rough_exp2(__m512 x) {
  const __m512 least = _mm512_set1_ps(-126.0f), magic = _mm512_set1_ps(12582912.0f);
  const __m512 power = _mm512_max_ps(x, least);
  const __m512 nearest = _mm512_add_ps(power, magic);
  const __m512 r = _mm512_sub_ps(power, _mm512_sub_ps(nearest, magic));
  __m512 p = _mm512_set1_ps(kRoughExp2[4]);
  for (int i = 3; i >= 0; --i) p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(kRoughExp2[i]));
  const __m512i exponent = _mm512_slli_epi32(_mm512_castps_si512(nearest), 23);
  const __mmask16 some = _mm512_cmp_ps_mask(x, least, _CMP_GT_OQ);
  return _mm512_maskz_mov_ps(
      some, _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(p), exponent)));
}

struct Slope {
  __m512 value, slope;
};

// Functions, both value and slope, and slope times a gradient. kKeepsInput: the backward pass reads
// what came in, not what came out.
struct TileRelu {
  static constexpr bool kKeepsInput = false;
  [[RAPT_TILE_ENDS_TARGET]] inline Slope operator()(__m512 x) const {
    // A NaN comes out as NaN, as in the kernels for rows.
    const __mmask16 negative = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ);
    const __mmask16 flat = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LE_OQ);
    return {_mm512_mask_mov_ps(x, negative, _mm512_setzero_ps()),
            _mm512_mask_mov_ps(_mm512_set1_ps(1.0f), flat, _mm512_setzero_ps())};
  }
};

struct TileGelu {
  static constexpr bool kKeepsInput = true;
  [[RAPT_TILE_ENDS_TARGET]] inline Slope operator()(__m512 x) const {
    const __m512 one = _mm512_set1_ps(1.0f), z = _mm512_abs_ps(x);
    const __m512 e =
        rough_exp2(_mm512_mul_ps(_mm512_mul_ps(z, z), _mm512_set1_ps(kRoughHalfSquare)));
    const __m512 t = rough_reciprocal(_mm512_fmadd_ps(z, _mm512_set1_ps(kRoughTailRate), one));
    __m512 p = _mm512_set1_ps(kRoughTail[4]);
    for (int i = 3; i >= 0; --i) p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(kRoughTail[i]));
    const __m512 tail = _mm512_mul_ps(e, _mm512_mul_ps(t, p));
    const __mmask16 negative = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ);
    const __m512 cumulative = _mm512_mask_mov_ps(_mm512_sub_ps(one, tail), negative, tail);
    const __m512 density = _mm512_mul_ps(e, _mm512_set1_ps(kNormalDensity));
    return {_mm512_mul_ps(x, cumulative), _mm512_fmadd_ps(x, density, cumulative)};
  }
};

struct TileGeluTanh {
  static constexpr bool kKeepsInput = true;
  [[RAPT_TILE_ENDS_TARGET]] inline Slope operator()(__m512 x) const {
    const __m512 one = _mm512_set1_ps(1.0f), square = _mm512_mul_ps(x, x);
    const __m512 a = _mm512_set1_ps(kGeluTanhA);
    const __m512 inner = _mm512_mul_ps(x, _mm512_fmadd_ps(square, _mm512_set1_ps(kGeluTanhB), a));
    const __m512 inner_grad = _mm512_fmadd_ps(square, _mm512_set1_ps(3 * kGeluTanhB), a);
    const __m512 e = rough_exp2(_mm512_mul_ps(_mm512_abs_ps(inner), _mm512_set1_ps(-kLog2E)));
    const __m512 right = rough_reciprocal(_mm512_add_ps(one, e)), left = _mm512_mul_ps(e, right);
    const __mmask16 negative = _mm512_cmp_ps_mask(inner, _mm512_setzero_ps(), _CMP_LT_OQ);
    const __m512 logistic = _mm512_mask_mov_ps(right, negative, left);
    const __m512 steep = _mm512_mul_ps(_mm512_mul_ps(left, right), inner_grad);
    return {_mm512_mul_ps(x, logistic), _mm512_fmadd_ps(x, steep, logistic)};
  }
};

// The ends. row(sums, r, c, cols) has 32 sums of row r from column c on, of which `cols` count. One
// that reads has fetch(r, c), which is called a block ahead.

struct StoreSums {
  static constexpr bool kReads = false;
  const TileProduct& p;
  bool takes_tiles() const { return !p.stream; }  // whole blocks need no end

  [[RAPT_TILE_ENDS_TARGET]] inline void row(const float* sums, int64_t r, int64_t c,
                                            int64_t cols) const {
    const Row32 v = load_sums(sums);
    float* const to = p.sums + r * p.ld_sums + c;
    if (p.stream && cols == kPanel) {
      _mm512_stream_ps(to, v.first);
      _mm512_stream_ps(to + kTile, v.second);
      return;
    }
    const uint32_t mask = mask_of(cols);
    _mm512_mask_storeu_ps(to, static_cast<__mmask16>(mask), v.first);
    _mm512_mask_storeu_ps(to + kTile, static_cast<__mmask16>(mask >> 16), v.second);
  }
};

struct RoundSums {
  static constexpr bool kReads = false;
  const TileProduct& p;
  static bool takes_tiles() { return false; }

  [[RAPT_TILE_ENDS_TARGET]] inline void row(const float* sums, int64_t r, int64_t c,
                                            int64_t cols) const {
    Row32 v = load_sums(sums);
    bf16* const to = p.out + r * p.ld_out + c;
    if (p.accumulate) {
      const Row32 old = load_bf16(to, cols);
      v = {_mm512_add_ps(v.first, old.first), _mm512_add_ps(v.second, old.second)};
    }
    store_bf16(rounded(v), to, cols, p.stream && !p.accumulate);
  }
};

// result = f(sums); the sums themselves to `out`, if that is there. f sees them rounded, as the
// backward pass will.
template <class Function>
struct Activate {
  static constexpr bool kReads = false;
  const TileProduct& p;
  static bool takes_tiles() { return false; }

  [[RAPT_TILE_ENDS_TARGET]] inline void row(const float* sums, int64_t r, int64_t c,
                                            int64_t cols) const {
    const Function f;
    const __m512i in = rounded(load_sums(sums));
    const Row32 x = widened(in);
    const int64_t at = r * p.ld_out + c;
    if (p.out != nullptr) store_bf16(in, p.out + at, cols, p.stream);
    store_bf16(rounded({f(x.first).value, f(x.second).value}), p.result + at, cols, p.stream);
  }
};

// out = sums f'(kept), of which `kept` is what f made, or what it was given; then result = f(kept).
template <class Function>
struct TakeSlope {
  static constexpr bool kReads = true;
  const TileProduct& p;
  void fetch(int64_t r, int64_t c) const { __builtin_prefetch(p.kept + r * p.ld_out + c); }
  static bool takes_tiles() { return false; }

  [[RAPT_TILE_ENDS_TARGET]] inline void row(const float* sums, int64_t r, int64_t c,
                                            int64_t cols) const {
    const Function f;
    const Row32 dy = load_sums(sums);
    const int64_t at = r * p.ld_out + c;
    const Row32 kept = load_bf16(p.kept + at, cols);
    const Slope first = f(kept.first), second = f(kept.second);
    if constexpr (Function::kKeepsInput)
      store_bf16(rounded({first.value, second.value}), p.result + at, cols, false);
    const Row32 dx = {_mm512_mul_ps(dy.first, first.slope), _mm512_mul_ps(dy.second, second.slope)};
    store_bf16(rounded(dx), p.out + at, cols, p.stream);
  }
};

}  // namespace rapt::kernels::x86
