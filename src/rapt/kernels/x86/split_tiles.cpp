#include "rapt/kernels/x86/split_tiles.h"

#include <immintrin.h>

#include <algorithm>

// GCC 12 warns of operands that its own intrinsics leave undefined on purpose (gcc bug 105593).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace rapt::kernels::x86 {
namespace {

constexpr int64_t kTile = 16;                   // rows of a tile, each of 64 bytes
constexpr int64_t kTileBytes = 64 * kTile;      //
constexpr int64_t kPartBytes = 2 * kTileBytes;  // two tiles, of 16 rows or columns each
template <int Parts>
constexpr int64_t kBlockBytes = Parts* kPartBytes;

int64_t blocks_of(int64_t size) { return (size + kPanel - 1) / kPanel; }

// The three parts of 16 numbers, each in the upper half of 32 bits.
struct Split {
  __m512i part[kExactParts];
};

// `bad` becomes NaN in a lane whose number has no parts: the last remainder is NaN exactly then.
[[gnu::target("avx512f,avx512bw"), gnu::always_inline]] inline Split split(__m512 x, __m512& bad) {
  const __m512i half = _mm512_set1_epi32(0x8000), upper = _mm512_set1_epi32(-0x10000);
  Split s;
  s.part[0] = _mm512_and_si512(_mm512_add_epi32(_mm512_castps_si512(x), half), upper);
  const __m512 rest = _mm512_sub_ps(x, _mm512_castsi512_ps(s.part[0]));
  s.part[1] = _mm512_and_si512(_mm512_add_epi32(_mm512_castps_si512(rest), half), upper);
  const __m512 last = _mm512_sub_ps(rest, _mm512_castsi512_ps(s.part[1]));
  s.part[2] = _mm512_castps_si512(last);
  bad = _mm512_add_ps(bad, last);
  return s;
}

// The upper halves of both: of `a` as the lower half.
[[gnu::target("avx512f,avx512bw"), gnu::always_inline]] inline __m512i merged(__m512i a,
                                                                              __m512i b) {
  return _mm512_mask_mov_epi16(_mm512_srli_epi32(a, 16), 0xAAAAAAAAu, b);
}

// Sixteen words of two bf16 numbers for each part. A word has the numbers k and k + 16 of a block's
// inner index: the order is any, as long as it is that of both operands.
template <int Parts>
struct Words {
  __m512i part[Parts];
};

// The words of two times 16 numbers, the upper halves of both.
template <int Parts>
[[gnu::target("avx512f,avx512bw,avx512bf16"), gnu::always_inline]] inline Words<Parts> words_of(
    __m512 first, __m512 second, __m512& bad) {
  Words<Parts> w;
  if constexpr (Parts == 1) {
    // Sixteen of each, to pairs.
    alignas(64) static constexpr uint16_t kPairs[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                        21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                        11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    w.part[0] = _mm512_permutexvar_epi16(_mm512_load_si512(kPairs),
                                         (__m512i)_mm512_cvtne2ps_pbh(second, first));
  } else {
    const Split a = split(first, bad), b = split(second, bad);
    for (int p = 0; p < Parts; ++p) w.part[p] = merged(a.part[p], b.part[p]);
  }
  return w;
}

// Asks for what stands `distance` numbers on, as far as there is anything.
[[gnu::always_inline]] inline void prefetch(const float* from, int64_t distance) {
  const auto at =
      reinterpret_cast<uintptr_t>(from) + static_cast<uintptr_t>(distance) * sizeof(float);
  _mm_prefetch(reinterpret_cast<const char*>(at), _MM_HINT_T1);
}

// The words of 32 numbers that lie side by side.
template <int Parts>
[[gnu::target("avx512f,avx512bw,avx512bf16"), gnu::always_inline]] inline Words<Parts> words_along(
    const float* from, int64_t ld, int64_t count, __m512& bad) {
  prefetch(from, kPanel * ld);
  prefetch(from + kTile, kPanel * ld);
  const auto mask = static_cast<uint32_t>((uint64_t{1} << count) - 1);
  return words_of<Parts>(_mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), from),
                         _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> 16), from + kTile),
                         bad);
}

// The words of 16 numbers and of those 16 stored rows below; `rows` are there.
template <int Parts>
[[gnu::target("avx512f,avx512bw,avx512bf16"), gnu::always_inline]] inline Words<Parts> words_across(
    const float* from, int64_t ld, int64_t rows, __mmask16 mask, __m512& bad) {
  prefetch(from, kPanel * ld);
  prefetch(from, (kPanel + kTile) * ld);
  return words_of<Parts>(
      _mm512_maskz_loadu_ps(rows > 0 ? mask : __mmask16{0}, from),
      _mm512_maskz_loadu_ps(rows > kTile ? mask : __mmask16{0}, from + kTile * ld), bad);
}

template <int Parts>
[[gnu::target("avx512f"), gnu::always_inline]] inline void store(const Words<Parts>& words,
                                                                 char* to) {
  for (int p = 0; p < Parts; ++p) _mm512_store_si512(to + p * kPartBytes, words.part[p]);
}

// Stores the transpose of a tile of 16 x 16 words.
[[gnu::target("avx512f,avx512bw"), gnu::always_inline]] inline void store_transposed(
    const __m512i* row, char* to) {
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
    _mm512_store_si512(to + 64 * c, _mm512_shuffle_i32x4(low0, low1, 0x88));
    _mm512_store_si512(to + 64 * (c + 4), _mm512_shuffle_i32x4(high0, high1, 0x88));
    _mm512_store_si512(to + 64 * (c + 8), _mm512_shuffle_i32x4(low0, low1, 0xDD));
    _mm512_store_si512(to + 64 * (c + 12), _mm512_shuffle_i32x4(high0, high1, 0xDD));
  }
}

// The tiles of a half panel that there is none of.
template <int Parts>
void zero_tiles(char* to) {
  for (int64_t p = 0; p < Parts; ++p) std::fill_n(to + p * kPartBytes, kTileBytes, char{0});
}

// The tiles of 16 of the outer size and 32 of the inner one, kPartBytes apart.
template <int Parts>
[[gnu::target("avx512f,avx512bw,avx512bf16"), gnu::always_inline]] inline void pack_some(
    const float* from, int64_t ld, Stored stored, int64_t outer, int64_t inner, bool transpose,
    __m512& bad, char* to) {
  const auto mask = static_cast<__mmask16>((1u << outer) - 1);
  __m512i words[Parts][kTile];
  for (int64_t i = 0; i < kTile; ++i) {
    Words<Parts> w;
    if (stored == Stored::by_inner) {
      w = words_across<Parts>(from + i * ld, ld, inner - i, mask, bad);
    } else {
      w = words_along<Parts>(i < outer ? from + i * ld : from, ld, i < outer ? inner : 0, bad);
    }
    if (transpose) {
      for (int p = 0; p < Parts; ++p) words[p][i] = w.part[p];
    } else {
      store(w, to + 64 * i);
    }
  }
  if (!transpose) return;
  for (int p = 0; p < Parts; ++p) store_transposed(words[p], to + p * kPartBytes);
}

// The same, faster where the tiles are whole.
template <int Parts>
[[gnu::target("avx512f,avx512bw,avx512bf16")]] void pack_tiles(const float* from, int64_t ld,
                                                               Stored stored, int64_t outer,
                                                               int64_t inner, bool transpose,
                                                               __m512& bad, char* to) {
  if (outer == kTile && inner == kPanel) {
    pack_some<Parts>(from, ld, stored, kTile, kPanel, transpose, bad, to);
  } else {
    pack_some<Parts>(from, ld, stored, outer, inner, transpose, bad, to);
  }
}

// Goes through the source in its own order: 32 stored rows at a time, from left to right.
template <int Parts>
[[gnu::target("avx512f,avx512bw,avx512bf16")]] bool pack(const float* from, int64_t ld,
                                                         Stored stored, int64_t outer,
                                                         int64_t inner, bool transpose, char* to) {
  __m512 bad = _mm512_setzero_ps();
  const int64_t panels = blocks_of(outer), blocks = blocks_of(inner);
  const bool along = stored == Stored::by_outer;
  for (int64_t down = 0; down < (along ? panels : blocks); ++down) {
    for (int64_t across = 0; across < (along ? blocks : panels); ++across) {
      const int64_t panel = along ? down : across, block = along ? across : down;
      const float* const source = from + (down * ld + across) * kPanel;
      char* const tiles = to + (panel * blocks + block) * kBlockBytes<Parts>;
      for (int64_t half = 0; half < 2; ++half) {
        const int64_t left = outer - panel * kPanel - half * kTile;
        if (left <= 0 && half == 1) {
          zero_tiles<Parts>(tiles + kTileBytes);
          continue;
        }
        pack_tiles<Parts>(source + half * kTile * (along ? ld : 1), ld, stored,
                          std::min(left, kTile), std::min(kPanel, inner - block * kPanel),
                          transpose, bad, tiles + half * kTileBytes);
      }
    }
  }
  return _mm512_cmp_ps_mask(_mm512_sub_ps(bad, bad), _mm512_setzero_ps(), _CMP_NEQ_UQ) == 0;
}

// A block of at most 32 x 32 numbers as both operands. The compiler knows `whole`.
template <int Parts>
[[gnu::target("avx512f,avx512bw,avx512bf16"), gnu::always_inline]] inline void pack_both_ways(
    const float* from, int64_t ld, int64_t rows, int64_t cols, bool whole, char* left,
    char* right) {
  const auto mask = whole ? ~uint32_t{0} : static_cast<uint32_t>((uint64_t{1} << cols) - 1);
  __m512 bad = _mm512_setzero_ps();  // of no interest
  for (int64_t i = 0; i < kTile; ++i) {
    __m512 x[2][2];  // [rows i and i + 16][halves of 16 columns]
    for (int64_t r = 0; r < 2; ++r) {
      const bool there = whole || i + r * kTile < rows;
      const float* const row = there ? from + (i + r * kTile) * ld : from;
      const uint32_t lanes = there ? mask : 0;
      x[r][0] = _mm512_maskz_loadu_ps(static_cast<__mmask16>(lanes), row);
      x[r][1] = _mm512_maskz_loadu_ps(static_cast<__mmask16>(lanes >> 16), row + kTile);
    }
    if constexpr (Parts == 1) {
      for (int64_t k = 0; k < 2; ++k) {
        store(words_of<1>(x[k][0], x[k][1], bad), left + k * kTileBytes + 64 * i);
        store(words_of<1>(x[0][k], x[1][k], bad), right + k * kTileBytes + 64 * i);
      }
    } else {
      const Split s[2][2] = {{split(x[0][0], bad), split(x[0][1], bad)},
                             {split(x[1][0], bad), split(x[1][1], bad)}};
      for (int p = 0; p < Parts; ++p) {
        for (int64_t k = 0; k < 2; ++k) {
          const int64_t at = p * kPartBytes + k * kTileBytes + 64 * i;
          _mm512_store_si512(left + at, merged(s[k][0].part[p], s[k][1].part[p]));
          _mm512_store_si512(right + at, merged(s[0][k].part[p], s[1][k].part[p]));
        }
      }
    }
  }
}

template <int Parts>
[[gnu::target("avx512f,avx512bw,avx512bf16")]] void pack_both(const float* from, int64_t ld,
                                                              int64_t rows, int64_t cols,
                                                              char* left, char* right) {
  const int64_t down = blocks_of(rows), across = blocks_of(cols);
  for (int64_t i = 0; i < down; ++i) {
    for (int64_t j = 0; j < across; ++j) {
      const float* const block = from + (i * ld + j) * kPanel;
      char* const to_left = left + (i * across + j) * kBlockBytes<Parts>;
      char* const to_right = right + (j * down + i) * kBlockBytes<Parts>;
      const int64_t r = std::min(kPanel, rows - i * kPanel),
                    c = std::min(kPanel, cols - j * kPanel);
      if (r == kPanel && c == kPanel) {
        pack_both_ways<Parts>(block, ld, kPanel, kPanel, true, to_left, to_right);
      } else {
        pack_both_ways<Parts>(block, ld, r, c, false, to_left, to_right);
      }
    }
  }
}

// Eight tiles of 16 rows of 64 bytes.
struct alignas(64) TileConfiguration {
  uint8_t palette = 1, start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfiguration) == 64);

// Compilers' intrinsics do not say all that they read: it must be stored first.
[[gnu::always_inline]] inline void store_before_tiles() { __asm__ volatile("" : : : "memory"); }

// Fetches `count` lines at p, which are wanted after the products of a step or two: in a burst they
// would stall for want of buffers.
template <int count>
[[gnu::always_inline]] inline void fetch_lines(const char* p) {
#pragma GCC unroll 8
  for (int i = 0; i < count; ++i) _mm_prefetch(p + 64 * i, _MM_HINT_T0);
}

// Fetches rows [first, last) of a block of c, which will be written.
[[gnu::always_inline]] inline void fetch_rows(const float* c, int64_t ldc, int64_t first,
                                              int64_t last) {
  for (int64_t i = first; i < last; ++i) {
    const auto at =
        reinterpret_cast<uintptr_t>(c) + static_cast<uintptr_t>(i * ldc) * sizeof(float);
    __builtin_prefetch(reinterpret_cast<const char*>(at), 1);
    __builtin_prefetch(reinterpret_cast<const char*>(at + 64), 1);
  }
}

// One block of 32 x 32 of c: tiles 0 to 3; left tiles in 4 and 5, right ones in 6 and 7. The order
// of the six products changes one operand at a time, and takes small ones first but for the last.
// `next` is the block of c that comes after this one.
[[gnu::target("amx-tile,amx-bf16")]] void multiply_exact_block(const char* left, const char* right,
                                                               int64_t blocks, const float* next,
                                                               int64_t ldc) {
  const int64_t rows = (kPanel + blocks - 1) / blocks;  // of `next`, fetched at each step
  for (int64_t i = 0; i < blocks; ++i, left += kBlockBytes<3>, right += kBlockBytes<3>) {
    const char* const ahead = left + kBlockBytes<3>;
    fetch_rows(next, ldc, std::min(kPanel, i * rows), std::min(kPanel, (i + 1) * rows));
    _tile_loadd(6, right + 2 * kPartBytes, 64);
    _tile_loadd(4, left, 64);
    _tile_dpbf16ps(0, 4, 6);
    fetch_lines<8>(ahead);
    _tile_loadd(7, right + 2 * kPartBytes + kTileBytes, 64);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, left + kTileBytes, 64);
    _tile_dpbf16ps(2, 5, 6);
    fetch_lines<8>(ahead + 512);
    _tile_dpbf16ps(3, 5, 7);

    _tile_loadd(6, right + kPartBytes, 64);
    _tile_dpbf16ps(0, 4, 6);
    fetch_lines<8>(ahead + 1024);
    _tile_loadd(7, right + kPartBytes + kTileBytes, 64);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    fetch_lines<8>(ahead + 1536);
    _tile_dpbf16ps(3, 5, 7);

    _tile_loadd(4, left + kPartBytes, 64);
    _tile_dpbf16ps(0, 4, 6);
    fetch_lines<8>(ahead + 2048);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, left + kPartBytes + kTileBytes, 64);
    _tile_dpbf16ps(2, 5, 6);
    fetch_lines<8>(ahead + 2560);
    _tile_dpbf16ps(3, 5, 7);

    _tile_loadd(6, right, 64);
    _tile_dpbf16ps(0, 4, 6);
    fetch_lines<8>(ahead + 3072);
    _tile_loadd(7, right + kTileBytes, 64);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    fetch_lines<8>(ahead + 3584);
    _tile_dpbf16ps(3, 5, 7);

    _tile_loadd(4, left + 2 * kPartBytes, 64);
    _tile_dpbf16ps(0, 4, 6);
    fetch_lines<8>(ahead + 4096);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, left + 2 * kPartBytes + kTileBytes, 64);
    _tile_dpbf16ps(2, 5, 6);
    fetch_lines<8>(ahead + 4608);
    _tile_dpbf16ps(3, 5, 7);

    _tile_loadd(4, left, 64);
    _tile_dpbf16ps(0, 4, 6);
    fetch_lines<8>(ahead + 5120);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, left + kTileBytes, 64);
    _tile_dpbf16ps(2, 5, 6);
    fetch_lines<8>(ahead + 5632);
    _tile_dpbf16ps(3, 5, 7);
  }
}

// The same where operands have one part.
[[gnu::target("amx-tile,amx-bf16")]] void multiply_plain_block(const char* left, const char* right,
                                                               int64_t blocks, const float* next,
                                                               int64_t ldc) {
  const int64_t rows = (kPanel + blocks - 1) / blocks;
  for (int64_t i = 0; i < blocks; ++i, left += kBlockBytes<1>, right += kBlockBytes<1>) {
    fetch_rows(next, ldc, std::min(kPanel, i * rows), std::min(kPanel, (i + 1) * rows));
    _tile_loadd(4, left, 64);
    _tile_loadd(6, right, 64);
    _tile_dpbf16ps(0, 4, 6);
    fetch_lines<8>(left + kBlockBytes<1>);
    _tile_loadd(7, right + kTileBytes, 64);
    _tile_dpbf16ps(1, 4, 7);
    fetch_lines<8>(left + kBlockBytes<1> + 512);
    _tile_loadd(5, left + kTileBytes, 64);
    _tile_dpbf16ps(2, 5, 6);
    fetch_lines<8>(left + kBlockBytes<1> + 1024);
    _tile_dpbf16ps(3, 5, 7);
    fetch_lines<8>(left + kBlockBytes<1> + 1536);
  }
}

template <int Parts>
void multiply_block(const char* left, const char* right, int64_t blocks, const float* next,
                    int64_t ldc) {
  if constexpr (Parts == kExactParts) {
    multiply_exact_block(left, right, blocks, next, ldc);
  } else {
    multiply_plain_block(left, right, blocks, next, ldc);
  }
}

// Sets the block to what stands at `c` with `stride` bytes between rows (0: one row for all).
[[gnu::target("amx-tile")]] void load_block(const float* c, int64_t stride) {
  const int64_t down = kTile * (stride / static_cast<int64_t>(sizeof(float)));
  _tile_loadd(0, c, stride);
  _tile_loadd(1, c + kTile, stride);
  _tile_loadd(2, c + down, stride);
  _tile_loadd(3, c + down + kTile, stride);
}

[[gnu::target("amx-tile")]] void store_block(float* c, int64_t ldc) {
  const int64_t stride = ldc * static_cast<int64_t>(sizeof(float));
  _tile_stored(0, c, stride);
  _tile_stored(1, c + kTile, stride);
  _tile_stored(2, c + kTile * ldc, stride);
  _tile_stored(3, c + kTile * ldc + kTile, stride);
}

[[gnu::target("amx-tile")]] void zero_block() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}

// A block at the edge of c goes through memory of its own.
template <int Parts>
[[gnu::target("amx-tile,amx-bf16")]] void multiply_edge(const char* left, const char* right,
                                                        int64_t blocks, int64_t rows, int64_t cols,
                                                        const float* bias, float* c, int64_t ldc,
                                                        bool accumulate) {
  alignas(64) float own[kPanel * kPanel] = {};
  for (int64_t r = 0; r < rows; ++r) {
    if (accumulate) {
      std::copy_n(c + r * ldc, cols, own + r * kPanel);
    } else if (bias != nullptr) {
      std::copy_n(bias, cols, own + r * kPanel);
    }
  }
  store_before_tiles();
  load_block(own, kPanel * sizeof(float));
  multiply_block<Parts>(left, right, blocks, own, kPanel);
  store_block(own, kPanel);
  store_before_tiles();
  for (int64_t r = 0; r < rows; ++r) std::copy_n(own + r * kPanel, cols, c + r * ldc);
}

template <int Parts>
[[gnu::target("amx-tile,amx-bf16")]] void multiply_panels(const char* a, const char* b,
                                                          int64_t rows, int64_t cols, int64_t inner,
                                                          const float* bias, float* c, int64_t ldc,
                                                          bool accumulate) {
  const TileConfiguration configuration;
  store_before_tiles();
  _tile_loadconfig(&configuration);
  const int64_t blocks = blocks_of(inner);
  for (int64_t col = 0; col < cols; col += kPanel) {
    const char* const panel = b + col / kPanel * blocks * kBlockBytes<Parts>;
    const float* const start = bias == nullptr ? nullptr : bias + col;
    for (int64_t row = 0; row < rows; row += kPanel) {
      const char* const from = a + row / kPanel * blocks * kBlockBytes<Parts>;
      float* const to = c + row * ldc + col;
      if (rows - row < kPanel || cols - col < kPanel) {
        multiply_edge<Parts>(from, panel, blocks, std::min(kPanel, rows - row),
                             std::min(kPanel, cols - col), start, to, ldc, accumulate);
        continue;
      }
      if (accumulate) {
        load_block(to, ldc * static_cast<int64_t>(sizeof(float)));
      } else if (start != nullptr) {
        load_block(start, 0);
      } else {
        zero_block();
      }
      multiply_block<Parts>(from, panel, blocks, to + kPanel * ldc, ldc);
      store_block(to, ldc);
    }
  }
  _tile_release();
}

bool pack(const float* from, int64_t ld, Stored stored, int64_t outer, int64_t inner, int parts,
          bool transpose, void* to) {
  char* const tiles = static_cast<char*>(to);
  if (parts == 1) return pack<1>(from, ld, stored, outer, inner, transpose, tiles), true;
  return pack<kExactParts>(from, ld, stored, outer, inner, transpose, tiles);
}

}  // namespace

size_t packed_bytes(int64_t outer, int64_t inner, int parts) {
  return static_cast<size_t>(blocks_of(outer) * blocks_of(inner) * parts * kPartBytes);
}

bool pack_left(const float* from, int64_t ld, Stored stored, int64_t outer, int64_t inner,
               int parts, void* to) {
  return pack(from, ld, stored, outer, inner, parts, stored == Stored::by_inner, to);
}

bool pack_right(const float* from, int64_t ld, Stored stored, int64_t outer, int64_t inner,
                int parts, void* to) {
  return pack(from, ld, stored, outer, inner, parts, stored == Stored::by_outer, to);
}

void pack_both(const float* from, int64_t ld, int64_t rows, int64_t cols, int parts, void* left,
               void* right) {
  const auto pack = parts == 1 ? pack_both<1> : pack_both<kExactParts>;
  pack(from, ld, rows, cols, static_cast<char*>(left), static_cast<char*>(right));
}

void multiply_packed(const void* left, const void* right, int64_t rows, int64_t cols, int64_t inner,
                     int parts, const float* bias, float* c, int64_t ldc, bool accumulate) {
  const auto multiply = parts == 1 ? multiply_panels<1> : multiply_panels<kExactParts>;
  multiply(static_cast<const char*>(left), static_cast<const char*>(right), rows, cols, inner, bias,
           c, ldc, accumulate);
}

}  // namespace rapt::kernels::x86
