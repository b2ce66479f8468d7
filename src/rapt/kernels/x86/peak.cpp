#include "rapt/kernels/x86/peak.h"

#include <immintrin.h>

#include <iterator>
#include <numeric>

namespace rapt::kernels::x86 {
namespace {

constexpr int16_t kOneBf16 = 0x3F80;

}  // namespace

// Twelve sums hide a latency of six cycles on two units. The empty instruction before each loop
// makes them differ for the compiler, which would compute equal ones once.

[[gnu::target("avx512f,avx512bw,avx512bf16")]] double bf16_rounds(int64_t rounds) {
  const __m512bh a = (__m512bh)_mm512_set1_epi16(kOneBf16), b = a;
  __m512 s0 = _mm512_setzero_ps(), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0,
         s8 = s0, s9 = s0, s10 = s0, s11 = s0;
  __asm__ volatile(""
                   : "+v"(s0), "+v"(s1), "+v"(s2), "+v"(s3), "+v"(s4), "+v"(s5), "+v"(s6), "+v"(s7),
                     "+v"(s8), "+v"(s9), "+v"(s10), "+v"(s11));
  for (int64_t i = 0; i < rounds; ++i) {
    s0 = _mm512_dpbf16_ps(s0, a, b);
    s1 = _mm512_dpbf16_ps(s1, a, b);
    s2 = _mm512_dpbf16_ps(s2, a, b);
    s3 = _mm512_dpbf16_ps(s3, a, b);
    s4 = _mm512_dpbf16_ps(s4, a, b);
    s5 = _mm512_dpbf16_ps(s5, a, b);
    s6 = _mm512_dpbf16_ps(s6, a, b);
    s7 = _mm512_dpbf16_ps(s7, a, b);
    s8 = _mm512_dpbf16_ps(s8, a, b);
    s9 = _mm512_dpbf16_ps(s9, a, b);
    s10 = _mm512_dpbf16_ps(s10, a, b);
    s11 = _mm512_dpbf16_ps(s11, a, b);
  }
  alignas(64) float sums[12 * 16];
  const __m512 all[12] = {s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11};
  for (int i = 0; i < 12; ++i) _mm512_store_ps(sums + 16 * i, all[i]);
  return std::accumulate(std::begin(sums), std::end(sums), 0.0);
}

[[gnu::target("avx512f,avx512bw,avx512vnni")]] double int8_rounds(int64_t rounds) {
  const __m512i a = _mm512_set1_epi8(1), b = a;
  __m512i s0 = _mm512_setzero_si512(), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0,
          s7 = s0, s8 = s0, s9 = s0, s10 = s0, s11 = s0;
  __asm__ volatile(""
                   : "+v"(s0), "+v"(s1), "+v"(s2), "+v"(s3), "+v"(s4), "+v"(s5), "+v"(s6), "+v"(s7),
                     "+v"(s8), "+v"(s9), "+v"(s10), "+v"(s11));
  for (int64_t i = 0; i < rounds; ++i) {
    s0 = _mm512_dpbusd_epi32(s0, a, b);
    s1 = _mm512_dpbusd_epi32(s1, a, b);
    s2 = _mm512_dpbusd_epi32(s2, a, b);
    s3 = _mm512_dpbusd_epi32(s3, a, b);
    s4 = _mm512_dpbusd_epi32(s4, a, b);
    s5 = _mm512_dpbusd_epi32(s5, a, b);
    s6 = _mm512_dpbusd_epi32(s6, a, b);
    s7 = _mm512_dpbusd_epi32(s7, a, b);
    s8 = _mm512_dpbusd_epi32(s8, a, b);
    s9 = _mm512_dpbusd_epi32(s9, a, b);
    s10 = _mm512_dpbusd_epi32(s10, a, b);
    s11 = _mm512_dpbusd_epi32(s11, a, b);
  }
  alignas(64) int32_t sums[12 * 16];
  const __m512i all[12] = {s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11};
  for (int i = 0; i < 12; ++i) _mm512_store_si512(sums + 16 * i, all[i]);
  return std::accumulate(std::begin(sums), std::end(sums), 0.0);
}

namespace {

// Eight tiles of 16 rows of 64 bytes.
struct alignas(64) TileConfiguration {
  uint8_t palette = 1, start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfiguration) == 64);

constexpr int kTileValues = 16 * 16;  // of four bytes

// GCC's intrinsics do not say all that they read: what the pointer leads to must be stored first.
void store_before_tiles(const void* data) { __asm__ volatile("" : : "r"(data) : "memory"); }

// Tiles 0 to 3 zero, 4 to 7 full of `pattern`.
[[gnu::target("amx-tile")]] void set_tiles(uint32_t pattern) {
  const TileConfiguration configuration;
  store_before_tiles(&configuration);
  _tile_loadconfig(&configuration);
  alignas(64) uint32_t values[kTileValues];
  for (uint32_t& value : values) value = pattern;
  store_before_tiles(values);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, values, 64);
  _tile_loadd(5, values, 64);
  _tile_loadd(6, values, 64);
  _tile_loadd(7, values, 64);
}

// The total of tiles 0 to 3, which are given up.
template <class T>
[[gnu::target("amx-tile")]] double total_of_tiles() {
  alignas(64) T values[4 * kTileValues];
  _tile_stored(0, values, 64);
  _tile_stored(1, values + kTileValues, 64);
  _tile_stored(2, values + 2 * kTileValues, 64);
  _tile_stored(3, values + 3 * kTileValues, 64);
  _tile_release();
  return std::accumulate(std::begin(values), std::end(values), 0.0);
}

}  // namespace

// A 2 x 2 block of tiles hides the latency: one product starts every 16 cycles and takes 52.

[[gnu::target("amx-tile,amx-bf16")]] double amx_bf16_rounds(int64_t rounds) {
  set_tiles(uint32_t{kOneBf16} << 16 | kOneBf16);
  for (int64_t i = 0; i < rounds; ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  return total_of_tiles<float>();
}

[[gnu::target("amx-tile,amx-int8")]] double amx_int8_rounds(int64_t rounds) {
  set_tiles(0x01010101);
  for (int64_t i = 0; i < rounds; ++i) {
    _tile_dpbusd(0, 4, 6);
    _tile_dpbusd(1, 4, 7);
    _tile_dpbusd(2, 5, 6);
    _tile_dpbusd(3, 5, 7);
  }
  return total_of_tiles<int32_t>();
}

}  // namespace rapt::kernels::x86
