// Sixteen rows of sixteen words turned around, for the sources of x86/.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "rapt/kernels/x86/tiles.h"

namespace rapt::kernels::x86 {

// Stores the transpose of a tile of 16 x 16 words, in rows `stride` bytes apart.
[[gnu::target("avx512f,avx512bw"), gnu::always_inline]] inline void store_transposed(
    const __m512i* row, char* to, int64_t stride = 64) {
  __m512i a[kTile], b[kTile];
  for (int i = 0; i < kTile; i += 2) {
    a[i] = _mm512_unpacklo_epi32(row[i], row[i + 1]);
    a[i + 1] = _mm512_unpackhi_epi32(row[i], row[i + 1]);
  }
  for (int i = 0; i < kTile; i += 4) {
    for (int j = 0; j < 2; ++j) {
      b[i + 2 * j] = _mm512_unpacklo_epi64(a[i + j], a[i + j + 2]);
      b[i + 2 * j + 1] = _mm512_unpackhi_epi64(a[i + j], a[i + j + 2]);
    }
  }
  // b[4 g + c] has the columns c, c + 4, c + 8, c + 12 of the rows 4 g to 4 g + 3.
  for (int c = 0; c < 4; ++c) {
    const __m512i low0 = _mm512_shuffle_i32x4(b[c], b[4 + c], 0x88);
    const __m512i high0 = _mm512_shuffle_i32x4(b[c], b[4 + c], 0xDD);
    const __m512i low1 = _mm512_shuffle_i32x4(b[8 + c], b[12 + c], 0x88);
    const __m512i high1 = _mm512_shuffle_i32x4(b[8 + c], b[12 + c], 0xDD);
    _mm512_storeu_si512(to + stride * c, _mm512_shuffle_i32x4(low0, low1, 0x88));
    _mm512_storeu_si512(to + stride * (c + 4), _mm512_shuffle_i32x4(high0, high1, 0x88));
    _mm512_storeu_si512(to + stride * (c + 8), _mm512_shuffle_i32x4(low0, low1, 0xDD));
    _mm512_storeu_si512(to + stride * (c + 12), _mm512_shuffle_i32x4(high0, high1, 0xDD));
  }
}

}  // namespace rapt::kernels::x86
