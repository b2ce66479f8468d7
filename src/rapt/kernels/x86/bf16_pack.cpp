#include <algorithm>
#include <cstring>

#include "rapt/kernels/x86/bf16_tiles.h"
#include "rapt/kernels/x86/tiles.h"
#include "rapt/kernels/x86/transpose.h"

namespace rapt::kernels::x86 {
namespace {

constexpr int64_t kBlock = kBlockBytes<1>;
constexpr int64_t kTurned = 512;  // columns that are turned around together: 32 KiB of pairs

// The first `count` of 32 numbers side by side, and zeros.
[[RAPT_BF16_TARGET, gnu::always_inline]] inline __m512i load(const bf16* from, int64_t count) {
  const auto mask = static_cast<uint32_t>((uint64_t{1} << count) - 1);
  return _mm512_maskz_loadu_epi16(mask, from);
}

// The same of row `row` of a block, zeros behind its `rows` rows.
template <bool Whole>
[[RAPT_BF16_TARGET, gnu::always_inline]] inline __m512i load_row(const bf16* from, int64_t ld,
                                                                 int64_t row, int64_t rows,
                                                                 int64_t count) {
  if constexpr (Whole) return _mm512_loadu_si512(from + row * ld);
  return row < rows ? load(from + row * ld, count) : _mm512_setzero_si512();
}

// Pairs of the numbers of two rows: of their first and of their second 16 columns.
struct Pairs {
  __m512i first, second;
};

[[RAPT_BF16_TARGET, gnu::always_inline]] inline Pairs pairs_of(__m512i even, __m512i odd) {
  // Words are paired within lanes of eight: four of each half go to each lane before.
  const __m512i lanes = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
  even = _mm512_permutexvar_epi64(lanes, even);
  odd = _mm512_permutexvar_epi64(lanes, odd);
  return {_mm512_unpacklo_epi16(even, odd), _mm512_unpackhi_epi16(even, odd)};
}

// A block of a panel whose columns are stored rows: `cols` of them, `inner` numbers of each.
template <bool Whole>
[[RAPT_BF16_TARGET]] void pack_columns(const bf16* from, int64_t ld, int64_t cols, int64_t inner,
                                       char* to) {
  for (int64_t half = 0; half < 2; ++half, from += kTile * ld, to += kTileBytes) {
    __m512i words[kTile];
    for (int64_t i = 0; i < kTile; ++i)
      words[i] = load_row<Whole>(from, ld, i, cols - half * kTile, inner);
    store_transposed(words, to);
  }
}

// Two stored rows of inner numbers, of all panels `panel_bytes` apart. There may be one row only.
[[RAPT_BF16_TARGET]] void pack_rows(const bf16* even, const bf16* odd, int64_t cols, char* to,
                                    int64_t panel_bytes) {
  for (int64_t col = 0; col < cols; col += kPanel, to += panel_bytes) {
    const int64_t count = std::min(kPanel, cols - col);
    const Pairs pairs = pairs_of(load(even + col, count),
                                 odd == nullptr ? _mm512_setzero_si512() : load(odd + col, count));
    _mm512_store_si512(to, pairs.first);
    _mm512_store_si512(to + kTileBytes, pairs.second);
  }
}

// A block of each panel of a left operand whose columns are stored rows, up to 32 of them. They are
// read one after the other, as memory is read fastest; their pairs are turned around from the first
// cache.
[[RAPT_BF16_TARGET]] void pack_turned(const bf16* from, int64_t ld, int64_t inner, int64_t rows,
                                      char* to, int64_t panel_bytes) {
  alignas(64) char pairs[kTurned / kPanel * kBlock];
  const int64_t panels = blocks_of(rows);
  for (int64_t i = 0; i < kTile; ++i) {
    char* const at = pairs + i * 64;
    if (2 * i < inner) {
      const bf16* const even = from + 2 * i * ld;
      pack_rows(even, 2 * i + 1 < inner ? even + ld : nullptr, rows, at, kBlock);
      continue;
    }
    for (int64_t tile = 0; tile < 2 * panels; ++tile)
      std::fill_n(at + tile * kTileBytes, 64, char{0});
  }
  const char* tile = pairs;
  for (int64_t panel = 0; panel < panels; ++panel, to += panel_bytes) {
    for (int64_t half = 0; half < 2; ++half, tile += kTileBytes) {
      __m512i words[kTile];
      for (int64_t i = 0; i < kTile; ++i) words[i] = _mm512_load_si512(tile + 64 * i);
      store_transposed(words, to + half * kTileBytes);
    }
  }
}

void pack_by_columns(const bf16* from, int64_t ld, int64_t cols, int64_t inner, char* to) {
  for (int64_t col = 0; col < cols; col += kPanel) {
    for (int64_t k = 0; k < inner; k += kPanel, to += kBlock) {
      const int64_t n = std::min(kPanel, cols - col), count = std::min(kPanel, inner - k);
      const auto one = n == kPanel && count == kPanel ? pack_columns<true> : pack_columns<false>;
      one(from + col * ld + k, ld, n, count, to);
    }
  }
}

// Row by row, as memory is read fastest.
void pack_by_rows(const bf16* from, int64_t ld, int64_t cols, int64_t inner, char* to) {
  const int64_t blocks = blocks_of(inner);
  for (int64_t k = 0; k < inner; k += 2) {
    const bf16* const even = from + k * ld;
    char* const row = to + k / kPanel * kBlock + k % kPanel / 2 * 64;
    pack_rows(even, k + 1 < inner ? even + ld : nullptr, cols, row, blocks * kBlock);
  }
  // What the last block has no numbers for.
  for (int64_t k = inner + inner % 2; k < blocks * kPanel; k += 2) {
    for (int64_t panel = 0; panel < blocks_of(cols); ++panel) {
      char* const row = to + (panel * blocks + blocks - 1) * kBlock + k % kPanel / 2 * 64;
      std::fill_n(row, 64, char{0});
      std::fill_n(row + kTileBytes, 64, char{0});
    }
  }
}

}  // namespace

void pack_panels(const bf16* from, int64_t ld, Stored stored, int64_t cols, int64_t inner,
                 void* to) {
  const auto pack = stored == Stored::by_outer ? pack_by_columns : pack_by_rows;
  pack(from, ld, cols, inner, static_cast<char*>(to));
}

void pack_turned(const bf16* from, int64_t ld, int64_t rows, int64_t inner, void* to) {
  const int64_t panel_bytes = blocks_of(inner) * kBlock;
  for (int64_t k = 0; k < inner; k += kPanel) {
    char* const block = static_cast<char*>(to) + k / kPanel * kBlock;
    for (int64_t row = 0; row < rows; row += kTurned) {
      pack_turned(from + k * ld + row, ld, std::min(kPanel, inner - k),
                  std::min(kTurned, rows - row), block + row / kPanel * panel_bytes, panel_bytes);
    }
  }
}

}  // namespace rapt::kernels::x86
