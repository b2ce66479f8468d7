#include "rapt/kernels/x86/bf16_tiles.h"

#include <algorithm>
#include <cstring>

#include "rapt/kernels/x86/tiles.h"
#include "rapt/kernels/x86/transpose.h"

namespace rapt::kernels::x86 {
namespace {

#define RAPT_BF16_TARGET gnu::target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")

constexpr int64_t kBlock = kBlockBytes<1>;

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

// The transpose of 32 rows and 32 columns, or of as many as there are.
template <bool Whole>
[[RAPT_BF16_TARGET]] void transpose_block(const bf16* from, int64_t ld, int64_t rows, int64_t cols,
                                          bf16* to, int64_t ld_to) {
  __m512i first[kTile], second[kTile];
  for (int64_t i = 0; i < kTile; ++i) {
    const Pairs pairs = pairs_of(load_row<Whole>(from, ld, 2 * i, rows, cols),
                                 load_row<Whole>(from, ld, 2 * i + 1, rows, cols));
    first[i] = pairs.first;
    second[i] = pairs.second;
  }
  const int64_t stride = ld_to * static_cast<int64_t>(sizeof(bf16));
  char* const at = reinterpret_cast<char*>(to);
  if (Whole || cols >= kPanel) {
    store_transposed(first, at, stride);
    store_transposed(second, at + kTile * stride, stride);
    return;
  }
  alignas(64) char own[2 * kTileBytes];
  store_transposed(first, own);
  store_transposed(second, own + kTileBytes);
  for (int64_t c = 0; c < cols; ++c) std::memcpy(at + c * stride, own + 64 * c, 64);
}

// Where 32 rows of the left operand are read from: as they lie, or from a copy with zeros for what
// there is none of.
struct LeftRows {
  const bf16* at;
  int64_t ld;
};

LeftRows left_rows(const TileProduct& p, int64_t row, bf16* own) {
  const bf16* const from = p.left + row * p.ld_left;
  const int64_t rows = std::min(kPanel, p.rows - row);
  if (rows == kPanel && p.inner % kPanel == 0) return {from, p.ld_left};
  const int64_t ld = blocks_of(p.inner) * kPanel;
  std::fill_n(own, kPanel * ld, bf16());
  for (int64_t r = 0; r < rows; ++r) std::copy_n(from + r * p.ld_left, p.inner, own + r * ld);
  return {own, ld};
}

// One block of 32 x 32 sums in tiles 0 to 3. `right` comes from the second cache, the rows from the
// first.
[[RAPT_AMX_TARGET, gnu::always_inline]] inline void multiply_rows(const LeftRows& left,
                                                                  const char* right,
                                                                  int64_t blocks) {
  const int64_t stride = left.ld * static_cast<int64_t>(sizeof(bf16));
  const char* upper = reinterpret_cast<const char*>(left.at);
  const char* lower = upper + kTile * stride;
  for (int64_t i = 0; i < blocks; ++i, upper += 64, lower += 64, right += kBlock) {
    _tile_loadd(6, right, 64);
    _tile_loadd(4, upper, stride);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, right + kTileBytes, 64);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, lower, stride);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
}

[[RAPT_BF16_TARGET, gnu::always_inline]] inline __m512 widened(__mmask16 mask, const bf16* from) {
  return _mm512_castsi512_ps(
      _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, from)), 16));
}

enum class Rounding { store, stream, add };

// out = sums, past the caches where it is a stream (of whole lines), or out += sums, of a block.
template <Rounding How>
[[RAPT_BF16_TARGET, gnu::always_inline]] inline void round_rows(const float* sums, int64_t rows,
                                                                int64_t cols, bf16* out,
                                                                int64_t ld) {
  const auto mask = static_cast<uint32_t>((uint64_t{1} << cols) - 1);
  for (int64_t r = 0; r < rows; ++r, sums += kPanel, out += ld) {
    __m512 first = _mm512_load_ps(sums), second = _mm512_load_ps(sums + kTile);
    if constexpr (How == Rounding::add) {
      first = _mm512_add_ps(first, widened(static_cast<__mmask16>(mask), out));
      second = _mm512_add_ps(second, widened(static_cast<__mmask16>(mask >> 16), out + kTile));
    }
    const auto rounded = (__m512i)_mm512_cvtne2ps_pbh(second, first);
    if constexpr (How == Rounding::stream) {
      _mm512_stream_si512(reinterpret_cast<__m512i*>(out), rounded);
    } else {
      _mm512_mask_storeu_epi16(out, mask, rounded);
    }
  }
}

// The block of p that begins at a row and a column.
class Block {
 public:
  Block(const TileProduct& p, int64_t row, int64_t col)
      : p_(p),
        rows_(std::min(kPanel, p.rows - row)),
        cols_(std::min(kPanel, p.cols - col)),
        sums_(p.sums == nullptr ? nullptr : p.sums + row * p.ld_sums + col),
        bias_(p.bias == nullptr ? nullptr : p.bias + col),
        out_(p.out == nullptr ? nullptr : p.out + row * p.ld_out + col) {}

  // What the sums begin with.
  [[RAPT_AMX_TARGET, gnu::always_inline]] inline void begin(float* own) const {
    const bool whole = rows_ == kPanel && cols_ == kPanel;
    if (p_.add && whole) return load_block(sums_, p_.ld_sums * int64_t{sizeof(float)});
    if (bias_ == nullptr && !p_.add) return zero_block();
    if (!p_.add && cols_ == kPanel) return load_block(bias_, 0);
    std::fill_n(own, kPanel * kPanel, 0.0f);
    for (int64_t r = 0; r < rows_; ++r)
      std::copy_n(p_.add ? sums_ + r * p_.ld_sums : bias_, cols_, own + r * kPanel);
    store_before_tiles();
    load_block(own, kPanel * int64_t{sizeof(float)});
  }

  [[RAPT_AMX_TARGET, gnu::always_inline]] inline void end(float* own) const {
    if (out_ == nullptr && rows_ == kPanel && cols_ == kPanel)
      return store_block(sums_, p_.ld_sums);
    store_block(own, kPanel);
    store_before_tiles();
    if (out_ == nullptr) {
      for (int64_t r = 0; r < rows_; ++r)
        std::copy_n(own + r * kPanel, cols_, sums_ + r * p_.ld_sums);
    } else if (p_.accumulate) {
      round_rows<Rounding::add>(own, rows_, cols_, out_, p_.ld_out);
    } else if (p_.stream && cols_ == kPanel) {
      round_rows<Rounding::stream>(own, rows_, cols_, out_, p_.ld_out);
    } else {
      round_rows<Rounding::store>(own, rows_, cols_, out_, p_.ld_out);
    }
  }

 private:
  const TileProduct& p_;
  const int64_t rows_, cols_;
  float* const sums_;
  const float* const bias_;
  bf16* const out_;
};

}  // namespace

namespace {

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

void transpose(const bf16* from, int64_t ld, int64_t rows, int64_t cols, bf16* to, int64_t ld_to) {
  for (int64_t row = 0; row < rows; row += kPanel) {
    for (int64_t col = 0; col < cols; col += kPanel) {
      const int64_t m = std::min(kPanel, rows - row), n = std::min(kPanel, cols - col);
      const auto one = m == kPanel && n == kPanel ? transpose_block<true> : transpose_block<false>;
      one(from + row * ld + col, ld, m, n, to + col * ld_to + row, ld_to);
    }
  }
}

// Row blocks outside, so that their rows stay in the first cache.
[[RAPT_AMX_TARGET]] void multiply(const TileProduct& p) {
  alignas(64) bf16 own_rows[kPanel * kDeepest];
  alignas(64) float own[kPanel * kPanel];
  const int64_t blocks = blocks_of(p.inner);
  const TileConfiguration configuration;
  store_before_tiles();
  _tile_loadconfig(&configuration);
  for (int64_t row = 0; row < p.rows; row += kPanel) {
    const LeftRows left = left_rows(p, row, own_rows);
    const char* right = static_cast<const char*>(p.right);
    for (int64_t col = 0; col < p.cols; col += kPanel, right += p.panel_bytes) {
      const Block block(p, row, col);
      block.begin(own);
      multiply_rows(left, right, blocks);
      block.end(own);
    }
  }
  _tile_release();
  if (p.stream) _mm_sfence();
}

}  // namespace rapt::kernels::x86
