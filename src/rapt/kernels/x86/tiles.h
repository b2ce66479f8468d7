// The tiles of AMX and what they are fed with, for the sources of x86/: operands as split_tiles.h
// describes them.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "rapt/kernels/x86/split_tiles.h"

// GCC 12 warns of operands that its own intrinsics leave undefined on purpose (gcc bug 105593).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

// What code may use where the CPU has AVX-512, and code for bf16 where it has that. No compiler
// makes an instruction of bf16 of arithmetic in f32, so that such code runs on any AVX-512.
#define RAPT_BF16_TARGET gnu::target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")

// What code around tiles may use.
#define RAPT_AMX_TARGET \
  gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,amx-tile,amx-bf16")

namespace rapt::kernels::x86 {

constexpr int64_t kTile = 16;                   // rows of a tile, each of 64 bytes
constexpr int64_t kTileBytes = 64 * kTile;      //
constexpr int64_t kPartBytes = 2 * kTileBytes;  // two tiles, of 16 rows or columns each
template <int Parts>
constexpr int64_t kBlockBytes = Parts* kPartBytes;

inline int64_t blocks_of(int64_t size) { return (size + kPanel - 1) / kPanel; }

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

template <int Parts>
[[gnu::target("avx512f"), gnu::always_inline]] inline void store(const Words<Parts>& words,
                                                                 char* to) {
  for (int p = 0; p < Parts; ++p) _mm512_store_si512(to + p * kPartBytes, words.part[p]);
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

// Fetches `count` lines at p, which are wanted after the products of a step or two: in a burst they
// would stall for want of buffers.
template <int count>
[[gnu::always_inline]] inline void fetch_lines(const char* p) {
#pragma GCC unroll 8
  for (int i = 0; i < count; ++i) _mm_prefetch(p + 64 * i, _MM_HINT_T0);
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

// Sets the block to what stands at `c` with `stride` bytes between rows (0: one row for all).
[[gnu::target("amx-tile")]] inline void load_block(const float* c, int64_t stride) {
  const int64_t down = kTile * (stride / static_cast<int64_t>(sizeof(float)));
  _tile_loadd(0, c, stride);
  _tile_loadd(1, c + kTile, stride);
  _tile_loadd(2, c + down, stride);
  _tile_loadd(3, c + down + kTile, stride);
}

[[gnu::target("amx-tile")]] inline void store_block(float* c, int64_t ldc) {
  const int64_t stride = ldc * static_cast<int64_t>(sizeof(float));
  _tile_stored(0, c, stride);
  _tile_stored(1, c + kTile, stride);
  _tile_stored(2, c + kTile * ldc, stride);
  _tile_stored(3, c + kTile * ldc + kTile, stride);
}

[[gnu::target("amx-tile")]] inline void zero_block() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}

// Pieces of work handed out evenly over the steps of the products that they run beside.
template <class Piece>
class Paced {
 public:
  Paced(int64_t steps, const Piece& piece) : steps_(steps), piece_(piece), count_(piece.count()) {}

  void begin(const float*) {}
  [[RAPT_AMX_TARGET, gnu::always_inline]] inline void step(const char*, int64_t) {
    credit_ += count_;
    while (credit_ >= steps_ && done_ < count_) {
      credit_ -= steps_;
      piece_.run(done_++);
    }
  }
  [[RAPT_AMX_TARGET, gnu::always_inline]] inline void finish() {
    while (done_ < count_) piece_.run(done_++);
  }
  const Piece& piece() const { return piece_; }

 private:
  const int64_t steps_;
  Piece piece_;
  const int64_t count_;
  int64_t credit_ = 0, done_ = 0;
};

// One block of 32 x 32 of c: tiles 0 to 3; left tiles in 4 and 5, right ones in 6 and 7. The order
// of the six products changes one operand at a time, and takes small ones first but for the last.
// While the tiles multiply, the core does what beside.step(next left block, place in this one)
// says.
template <class Beside>
[[RAPT_AMX_TARGET, gnu::always_inline]] inline void multiply_exact_block(const char* left,
                                                                         const char* right,
                                                                         int64_t blocks,
                                                                         Beside& beside) {
  for (int64_t i = 0; i < blocks; ++i, left += kBlockBytes<3>, right += kBlockBytes<3>) {
    const char* const ahead = left + kBlockBytes<3>;
    _tile_loadd(6, right + 2 * kPartBytes, 64);
    _tile_loadd(4, left, 64);
    _tile_dpbf16ps(0, 4, 6);
    beside.step(ahead, 0);
    _tile_loadd(7, right + 2 * kPartBytes + kTileBytes, 64);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, left + kTileBytes, 64);
    _tile_dpbf16ps(2, 5, 6);
    beside.step(ahead, 1);
    _tile_dpbf16ps(3, 5, 7);

    _tile_loadd(6, right + kPartBytes, 64);
    _tile_dpbf16ps(0, 4, 6);
    beside.step(ahead, 2);
    _tile_loadd(7, right + kPartBytes + kTileBytes, 64);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    beside.step(ahead, 3);
    _tile_dpbf16ps(3, 5, 7);

    _tile_loadd(4, left + kPartBytes, 64);
    _tile_dpbf16ps(0, 4, 6);
    beside.step(ahead, 4);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, left + kPartBytes + kTileBytes, 64);
    _tile_dpbf16ps(2, 5, 6);
    beside.step(ahead, 5);
    _tile_dpbf16ps(3, 5, 7);

    _tile_loadd(6, right, 64);
    _tile_dpbf16ps(0, 4, 6);
    beside.step(ahead, 6);
    _tile_loadd(7, right + kTileBytes, 64);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    beside.step(ahead, 7);
    _tile_dpbf16ps(3, 5, 7);

    _tile_loadd(4, left + 2 * kPartBytes, 64);
    _tile_dpbf16ps(0, 4, 6);
    beside.step(ahead, 8);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, left + 2 * kPartBytes + kTileBytes, 64);
    _tile_dpbf16ps(2, 5, 6);
    beside.step(ahead, 9);
    _tile_dpbf16ps(3, 5, 7);

    _tile_loadd(4, left, 64);
    _tile_dpbf16ps(0, 4, 6);
    beside.step(ahead, 10);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, left + kTileBytes, 64);
    _tile_dpbf16ps(2, 5, 6);
    beside.step(ahead, 11);
    _tile_dpbf16ps(3, 5, 7);
  }
}

// The same where operands have one part.
template <class Beside>
[[RAPT_AMX_TARGET, gnu::always_inline]] inline void multiply_plain_block(const char* left,
                                                                         const char* right,
                                                                         int64_t blocks,
                                                                         Beside& beside) {
  for (int64_t i = 0; i < blocks; ++i, left += kBlockBytes<1>, right += kBlockBytes<1>) {
    const char* const ahead = left + kBlockBytes<1>;
    _tile_loadd(4, left, 64);
    _tile_loadd(6, right, 64);
    _tile_dpbf16ps(0, 4, 6);
    beside.step(ahead, 0);
    _tile_loadd(7, right + kTileBytes, 64);
    _tile_dpbf16ps(1, 4, 7);
    beside.step(ahead, 1);
    _tile_loadd(5, left + kTileBytes, 64);
    _tile_dpbf16ps(2, 5, 6);
    beside.step(ahead, 2);
    _tile_dpbf16ps(3, 5, 7);
    beside.step(ahead, 3);
  }
}

// Steps that a block of the inner size takes.
template <int Parts>
inline constexpr int64_t kSteps = Parts == kExactParts ? 12 : 4;

template <int Parts, class Beside>
[[RAPT_AMX_TARGET, gnu::always_inline]] inline void multiply_block(const char* left,
                                                                   const char* right,
                                                                   int64_t blocks, Beside& beside) {
  if constexpr (Parts == kExactParts) {
    multiply_exact_block(left, right, blocks, beside);
  } else {
    multiply_plain_block(left, right, blocks, beside);
  }
}

// A block at the edge of c goes through memory of its own.
template <int Parts, class Beside>
[[RAPT_AMX_TARGET]] void multiply_edge(const char* left, const char* right, int64_t rows,
                                       int64_t cols, const float* bias, const PackedProduct& p,
                                       float* c, Beside& beside) {
  alignas(64) float own[kPanel * kPanel] = {};
  for (int64_t r = 0; r < rows; ++r) {
    if (p.accumulate) {
      std::copy_n(c + r * p.ldc, cols, own + r * kPanel);
    } else if (bias != nullptr) {
      std::copy_n(bias, cols, own + r * kPanel);
    }
  }
  store_before_tiles();
  load_block(own, kPanel * sizeof(float));
  multiply_block<Parts>(left, right, blocks_of(p.inner), beside);
  store_block(own, kPanel);
  store_before_tiles();
  for (int64_t r = 0; r < rows; ++r) std::copy_n(own + r * kPanel, cols, c + r * p.ldc);
}

template <int Parts>
int64_t steps_of(std::span<const PackedProduct> products) {
  int64_t steps = 0;
  for (const PackedProduct& p : products)
    steps += blocks_of(p.rows) * blocks_of(p.cols) * blocks_of(p.inner) * kSteps<Parts>;
  return steps;
}

// Block by block, columns outside; beside.begin() hears of the block of c that comes after each.
template <int Parts, class Beside>
[[RAPT_AMX_TARGET, gnu::always_inline]] inline void multiply_one(const PackedProduct& p,
                                                                 Beside& beside) {
  const int64_t blocks = blocks_of(p.inner), right_blocks = blocks_of(p.right_inner);
  for (int64_t col = 0; col < p.cols; col += kPanel) {
    const char* const right =
        static_cast<const char*>(p.right) + col / kPanel * right_blocks * kBlockBytes<Parts>;
    const float* const bias = p.bias == nullptr ? nullptr : p.bias + col;
    for (int64_t row = 0; row < p.rows; row += kPanel) {
      const char* const left =
          static_cast<const char*>(p.left) + row / kPanel * blocks * kBlockBytes<Parts>;
      float* const c = p.c + row * p.ldc + col;
      const int64_t rows = std::min(kPanel, p.rows - row), cols = std::min(kPanel, p.cols - col);
      beside.begin(c + kPanel * p.ldc);
      if (rows < kPanel || cols < kPanel) {
        multiply_edge<Parts>(left, right, rows, cols, bias, p, c, beside);
        continue;
      }
      if (p.accumulate) {
        load_block(c, p.ldc * static_cast<int64_t>(sizeof(float)));
      } else if (bias != nullptr) {
        load_block(bias, 0);
      } else {
        zero_block();
      }
      multiply_block<Parts>(left, right, blocks, beside);
      store_block(c, p.ldc);
    }
  }
}

template <int Parts, class Beside>
[[RAPT_AMX_TARGET, gnu::always_inline]] inline void multiply_all(
    std::span<const PackedProduct> products, Beside& beside) {
  const TileConfiguration configuration;
  store_before_tiles();
  _tile_loadconfig(&configuration);
  for (const PackedProduct& p : products) multiply_one<Parts>(p, beside);
  _tile_release();
}

}  // namespace rapt::kernels::x86
