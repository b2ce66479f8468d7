#include "rapt/kernels/x86/int8.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "rapt/kernels/x86/tiles.h"

#define RAPT_VNNI_TARGET gnu::target("avx512f,avx512bw,avx512vnni")
#define RAPT_INT8_TILES_TARGET gnu::target("avx512f,avx512bw,amx-tile,amx-int8")

namespace rapt::kernels::x86 {
namespace {

constexpr int64_t kBlock = 2 * kTileBytes;  // of a panel: 64 inner numbers of 32 outputs

// Four inner numbers of a row, for each output.
[[RAPT_VNNI_TARGET, gnu::always_inline]] inline __m512i four_at(const uint8_t* from) {
  int32_t four;
  std::memcpy(&four, from, sizeof four);
  return _mm512_set1_epi32(four);
}

// Sums of some rows by a panel, in registers: each row's numbers meet both halves of the panel at
// once, or compilers would keep them for later in registers that the sums need.
template <int Rows>
[[RAPT_VNNI_TARGET]] void vnni_rows(const uint8_t* x, int64_t ldx, const int8_t* panel, int64_t K,
                                    int32_t* block) {
  constexpr int64_t kAhead = 2 * kBlock;  // a panel comes from memory, and the next one follows it
  __m512i sums[Rows][2];
#pragma GCC unroll 14
  for (int i = 0; i < Rows; ++i) sums[i][0] = sums[i][1] = _mm512_setzero_si512();
  for (int64_t k = 0; k < K; k += kInt8Block, panel += kBlock) {
    for (int64_t r = 0; r < kTile; ++r) {
      const __m512i low = _mm512_load_si512(panel + 64 * r),
                    high = _mm512_load_si512(panel + kTileBytes + 64 * r);
      const uint8_t* const four = x + k + 4 * r;
      const auto* const ahead = reinterpret_cast<const char*>(panel + kAhead + 64 * r);
      _mm_prefetch(ahead, _MM_HINT_T0);
      _mm_prefetch(ahead + kTileBytes, _MM_HINT_T0);
#pragma GCC unroll 14
      for (int i = 0; i < Rows; ++i) {
        const __m512i row = four_at(four + i * ldx);
        sums[i][0] = _mm512_dpbusd_epi32(sums[i][0], row, low);
        sums[i][1] = _mm512_dpbusd_epi32(sums[i][1], row, high);
      }
    }
  }
#pragma GCC unroll 14
  for (int i = 0; i < Rows; ++i) {
    _mm512_store_si512(block + i * kInt8Panel, sums[i][0]);
    _mm512_store_si512(block + i * kInt8Panel + kTile, sums[i][1]);
  }
}

using RowsFunction = void (*)(const uint8_t*, int64_t, const int8_t*, int64_t, int32_t*);

template <size_t... kCount>
RowsFunction rows_function(int64_t rows, std::index_sequence<kCount...>) {
  static constexpr RowsFunction kFunctions[] = {vnni_rows<static_cast<int>(kCount) + 1>...};
  return kFunctions[rows - 1];
}

// One panel by at most 32 rows: tiles 0 to 3 are the sums, 4 and 5 rows, 6 and 7 outputs.
[[RAPT_INT8_TILES_TARGET]] void tile_block(const uint8_t* x, int64_t ldx, int64_t rows,
                                           const int8_t* panel, int64_t K, int32_t* block) {
  constexpr int64_t kStride = kInt8Panel * static_cast<int64_t>(sizeof(int32_t));
  const bool both = rows > kTile;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t k = 0; k < K; k += kInt8Block, panel += kBlock) {
    for (int64_t i = 0; i < kBlock; i += 64)
      _mm_prefetch(reinterpret_cast<const char*>(panel + 4 * kBlock + i), _MM_HINT_T0);
    _tile_loadd(4, x + k, ldx);
    _tile_loadd(6, panel, 64);
    _tile_dpbusd(0, 4, 6);
    _tile_loadd(7, panel + kTileBytes, 64);
    _tile_dpbusd(1, 4, 7);
    if (!both) continue;
    _tile_loadd(5, x + kTile * ldx + k, ldx);
    _tile_dpbusd(2, 5, 6);
    _tile_dpbusd(3, 5, 7);
  }
  _tile_stored(0, block, kStride);
  _tile_stored(1, block + kTile, kStride);
  if (!both) return;
  _tile_stored(2, block + kTile * kInt8Panel, kStride);
  _tile_stored(3, block + kTile * kInt8Panel + kTile, kStride);
}

}  // namespace

void int8_dot_vnni(const Int8Product& p, const Int8Result& result) {
  constexpr int64_t kMost = 14;
  alignas(64) int32_t block[kMost * kInt8Panel];
  for (int64_t panel = p.first; panel < p.last; ++panel) {
    const int64_t groups = (p.rows + kMost - 1) / kMost;  // of about equal height
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t first = p.row + p.rows * g / groups,
                    rows = p.row + p.rows * (g + 1) / groups - first;
      rows_function(rows, std::make_index_sequence<kMost>())(
          p.x + first * p.ldx, p.ldx, p.packed + panel * kInt8Panel * p.K, p.K, block);
      int8_finish(result, block, first, rows, panel);
    }
  }
}

[[RAPT_INT8_TILES_TARGET]] void int8_dot_tiles(const Int8Product& p, const Int8Result& result) {
  const TileConfiguration configuration;
  store_before_tiles();
  _tile_loadconfig(&configuration);
  alignas(64) int32_t block[kInt8Panel * kInt8Panel];
  for (int64_t panel = p.first; panel < p.last; ++panel) {
    for (int64_t first = 0; first < p.rows; first += kInt8Panel) {
      const int64_t rows = std::min(kInt8Panel, p.rows - first);
      tile_block(p.x + (p.row + first) * p.ldx, p.ldx, rows, p.packed + panel * kInt8Panel * p.K,
                 p.K, block);
      store_before_tiles();
      int8_finish(result, block, p.row + first, rows, panel);
    }
  }
  _tile_release();
}

}  // namespace rapt::kernels::x86
