#include "rapt/kernels/x86/bf16_tiles.h"

#include <algorithm>

#include "rapt/kernels/x86/bf16_ends.h"
#include "rapt/kernels/x86/tiles.h"

namespace rapt::kernels::x86 {
namespace {

constexpr int64_t kBlock = kBlockBytes<1>;

// Where 32 rows of the left operand are read from, in bytes: packed, as they lie, or from a copy
// with zeros for what there is none of.
struct LeftRows {
  const char* at;
  int64_t stride;  // from one row to the next
  int64_t step;    // from one block of the inner size to the next
};

LeftRows left_rows(const TileProduct& p, int64_t row, bf16* own) {
  if (p.packed_left != nullptr) {
    const int64_t panel_bytes = blocks_of(p.inner) * kBlock;
    return {static_cast<const char*>(p.packed_left) + row / kPanel * panel_bytes, 64, kBlock};
  }
  const auto in_place = [](const bf16* at, int64_t ld) {
    return LeftRows{reinterpret_cast<const char*>(at), ld * int64_t{sizeof(bf16)}, 64};
  };
  const bf16* const from = p.left + row * p.ld_left;
  const int64_t rows = std::min(kPanel, p.rows - row);
  if (rows == kPanel && p.inner % kPanel == 0) return in_place(from, p.ld_left);
  const int64_t ld = blocks_of(p.inner) * kPanel;
  std::fill_n(own, kPanel * ld, bf16());
  for (int64_t r = 0; r < rows; ++r) std::copy_n(from + r * p.ld_left, p.inner, own + r * ld);
  return in_place(own, ld);
}

// A block of sums that was stored apart, and waits for its end.
template <class End>
struct Waiting {
  const float* sums = nullptr;
  int64_t row = 0, col = 0, rows = 0, cols = 0;
  int64_t done = 0;  // rows

  // Ends the next `most` rows, or as many as there are.
  [[RAPT_TILE_ENDS_TARGET, gnu::always_inline]] inline void advance(int64_t most, const End& end) {
    for (const int64_t last = std::min(done + most, rows); done < last; ++done)
      end.row(sums + done * kPanel, row + done, col, cols);
  }
};

// One block of 32 x 32 sums in tiles 0 to 3. `right` comes from the second cache, the rows from the
// first. While the tiles multiply, the core ends the block before.
template <class End>
[[RAPT_AMX_TARGET, gnu::always_inline]] inline void multiply_rows(const LeftRows& left,
                                                                  const char* right, int64_t blocks,
                                                                  Waiting<End>& before,
                                                                  const End& end) {
  const int64_t stride = left.stride, pace = (kPanel + blocks - 1) / blocks;
  const char *upper = left.at, *lower = upper + kTile * stride;
  for (int64_t i = 0; i < blocks; ++i, upper += left.step, lower += left.step, right += kBlock) {
    _tile_loadd(6, right, 64);
    _tile_loadd(4, upper, stride);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, right + kTileBytes, 64);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, lower, stride);
    _tile_dpbf16ps(2, 5, 6);
    before.advance(pace, end);
    _tile_dpbf16ps(3, 5, 7);
  }
  before.advance(kPanel, end);
}

// What the sums of a block begin with.
[[RAPT_AMX_TARGET, gnu::always_inline]] inline void begin_block(const TileProduct& p, int64_t row,
                                                                int64_t col, float* own) {
  const int64_t rows = std::min(kPanel, p.rows - row), cols = std::min(kPanel, p.cols - col);
  const bool whole = rows == kPanel && cols == kPanel;
  const float* const from = p.add ? p.sums + row * p.ld_sums + col : nullptr;
  if (p.add && whole) return load_block(from, p.ld_sums * int64_t{sizeof(float)});
  if (p.bias == nullptr && !p.add) return zero_block();
  if (!p.add && cols == kPanel) return load_block(p.bias + col, 0);
  std::fill_n(own, kPanel * kPanel, 0.0f);
  for (int64_t r = 0; r < rows; ++r)
    std::copy_n(p.add ? from + r * p.ld_sums : p.bias + col, cols, own + r * kPanel);
  store_before_tiles();
  load_block(own, kPanel * int64_t{sizeof(float)});
}

// Row blocks outside, so that their rows stay in the first cache.
template <class End>
[[RAPT_AMX_TARGET]] void multiply_and_end(const TileProduct& p, const End& end) {
  alignas(64) bf16 own_rows[kPanel * kDeepest];
  alignas(64) float own[2][kPanel * kPanel];  // of a block and of the one before
  const int64_t blocks = blocks_of(p.inner);
  Waiting<End> before;
  int turn = 0;
  const TileConfiguration configuration;
  store_before_tiles();
  _tile_loadconfig(&configuration);
  for (int64_t row = 0; row < p.rows; row += kPanel) {
    const LeftRows left = left_rows(p, row, own_rows);
    const char* right = static_cast<const char*>(p.right);
    for (int64_t col = 0; col < p.cols; col += kPanel, right += p.panel_bytes) {
      const int64_t rows = std::min(kPanel, p.rows - row), cols = std::min(kPanel, p.cols - col);
      if constexpr (End::kReads) {
        for (int64_t r = 0; r < rows; ++r) end.fetch(row + r, col);
      }
      begin_block(p, row, col, own[turn]);
      multiply_rows(left, right, blocks, before, end);
      if (end.takes_tiles() && rows == kPanel && cols == kPanel) {
        store_block(p.sums + row * p.ld_sums + col, p.ld_sums);
        before = {};
        continue;
      }
      store_block(own[turn], kPanel);
      store_before_tiles();
      before = {own[turn], row, col, rows, cols};
      turn = 1 - turn;
    }
  }
  before.advance(kPanel, end);
  _tile_release();
  if (p.stream) _mm_sfence();
}

}  // namespace

void multiply(const TileProduct& p) {
  if (p.out == nullptr && p.result == nullptr) return multiply_and_end(p, StoreSums{p});
  if (!p.activation) return multiply_and_end(p, RoundSums{p});
  const auto end_with = [&](auto f) {
    using Function = decltype(f);
    if (p.gradient) return multiply_and_end(p, TakeSlope<Function>{p});
    return multiply_and_end(p, Activate<Function>{p});
  };
  switch (*p.activation) {
    case Activation::relu:
      return end_with(TileRelu());
    case Activation::gelu:
      return end_with(TileGelu());
    case Activation::gelu_tanh:
      return end_with(TileGeluTanh());
  }
}

}  // namespace rapt::kernels::x86
