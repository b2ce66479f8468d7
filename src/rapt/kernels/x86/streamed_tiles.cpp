#include "rapt/kernels/x86/streamed_tiles.h"

#include <algorithm>

#include "rapt/kernels/x86/tiles.h"
#include "rapt/kernels/x86/transpose.h"

namespace rapt::kernels::x86 {
namespace {

constexpr int64_t kBlock = kBlockBytes<kExactParts>;

// Places for packed blocks: a panel's, if several panels of columns meet it, and the next one's.
int64_t slots_of(int64_t cols, int64_t inner) { return cols <= kPanel ? 2 : blocks_of(inner) + 1; }

// Takes the left operand apart, block by block, some rows in each step of the products of another;
// what these multiply next is fetched meanwhile.
class BlockPieces {
 public:
  [[RAPT_AMX_TARGET]] explicit BlockPieces(const StreamedProduct& p)
      : p_(p),
        blocks_(blocks_of(p.inner)),
        slots_(slots_of(p.cols, p.inner)),
        bad_(_mm512_setzero_ps()) {}

  const char* slot(int64_t index) const {
    return static_cast<const char*>(p_.packed) + index % slots_ * kBlock;
  }

  // The next block in order; `right` is what it will meet.
  void begin(const char* right) {
    right_ = right;
    from_ = p_.left + row_ * p_.ld + block_ * kPanel;
    rows_ = std::clamp<int64_t>(p_.rows - row_, 0, kPanel);
    inner_ = std::min(kPanel, p_.inner - block_ * kPanel);
    to_ = static_cast<char*>(p_.packed) + begun_++ % slots_ * kBlock;
    if (++block_ == blocks_) {
      block_ = 0;
      row_ += kPanel;
    }
  }

  [[RAPT_AMX_TARGET, gnu::always_inline]] inline void step(const char*, int64_t place) {
    constexpr int64_t kPlaces = kSteps<kExactParts>;
    fetch_lines<8>(right_ + 512 * place);
    for (int64_t r = kPanel * place / kPlaces; r < kPanel * (place + 1) / kPlaces; ++r) {
      const bool there = r < rows_;
      const auto words = words_along<kExactParts>(there ? from_ + r * p_.ld : p_.left, p_.ld,
                                                  there ? inner_ : 0, bad_);
      store(words, to_ + r / kTile * kTileBytes + r % kTile * 64);
    }
  }

  [[RAPT_AMX_TARGET]] void finish() {
    for (int64_t place = 0; place < kSteps<kExactParts>; ++place) step(nullptr, place);
  }

  // Whether all numbers since the last call have parts.
  [[RAPT_AMX_TARGET]] bool whole() {
    const bool all =
        _mm512_cmp_ps_mask(_mm512_sub_ps(bad_, bad_), _mm512_setzero_ps(), _CMP_NEQ_UQ) == 0;
    bad_ = _mm512_setzero_ps();
    return all;
  }

 private:
  const StreamedProduct& p_;
  const int64_t blocks_, slots_;
  const char* right_ = nullptr;
  const float* from_ = nullptr;
  char* to_ = nullptr;
  int64_t begun_ = 0, row_ = 0, block_ = 0, rows_ = 0, inner_ = 0;
  __m512 bad_;
};

// Fetches the next blocks of both operands.
struct FetchBoth {
  const char *left, *right;

  [[gnu::always_inline]] inline void step(const char*, int64_t place) const {
    fetch_lines<8>(left + 512 * place);
    fetch_lines<8>(right + 512 * place);
  }
};

}  // namespace

size_t streamed_bytes(int64_t cols, int64_t inner) {
  return static_cast<size_t>(slots_of(cols, inner) * kBlock);
}

[[RAPT_AMX_TARGET]] void multiply_streamed(const StreamedProduct& p) {
  const int64_t blocks = blocks_of(p.inner), panels = blocks_of(p.cols);
  const auto right = [&](int64_t panel, int64_t block) {
    return static_cast<const char*>(p.right) + (panel * blocks + block % blocks) * kBlock;
  };
  BlockPieces pieces(p);
  pieces.begin(right(0, 0));
  pieces.finish();
  const TileConfiguration configuration;
  store_before_tiles();
  _tile_loadconfig(&configuration);
  int64_t first = 0;  // of the panel's blocks
  for (int64_t row = 0; row < p.rows; row += kPanel, first += blocks) {
    zero_block();
    for (int64_t i = 0; i < blocks; ++i) {
      if (i + 1 == blocks) p.whole[row / kPanel] = pieces.whole();
      pieces.begin(right(0, i + 1));
      store_before_tiles();
      multiply_exact_block(pieces.slot(first + i), right(0, i), 1, pieces);
    }
    store_block(p.c + row * p.ldc, p.ldc);
    for (int64_t panel = 1; panel < panels; ++panel) {
      zero_block();
      for (int64_t i = 0; i < blocks; ++i) {
        FetchBoth both{pieces.slot(first + (i + 1) % blocks), right(panel, i + 1)};
        multiply_exact_block(pieces.slot(first + i), right(panel, i), 1, both);
      }
      store_block(p.c + row * p.ldc + panel * kPanel, p.ldc);
    }
  }
  _tile_release();
  store_before_tiles();
}

[[gnu::target("avx512f,avx512bw")]] void turn(const float* c, int64_t ldc, int64_t outputs,
                                              int64_t rows, const float* bias, float* y,
                                              int64_t ldy) {
  for (int64_t n = 0; n < outputs; n += kTile) {
    const int64_t across = std::min(kTile, outputs - n);
    for (int64_t m = 0; m < rows; m += kTile) {
      const int64_t down = std::min(kTile, rows - m);
      const auto mask = static_cast<__mmask16>((1u << down) - 1);
      __m512i words[kTile] = {};
      for (int64_t i = 0; i < across; ++i) {
        const __m512 sums = _mm512_maskz_loadu_ps(mask, c + (n + i) * ldc + m);
        words[i] = _mm512_castps_si512(
            bias == nullptr ? sums : _mm512_add_ps(sums, _mm512_set1_ps(bias[n + i])));
      }
      float* const to = y + m * ldy + n;
      if (across == kTile && down == kTile) {
        store_transposed(words, reinterpret_cast<char*>(to),
                         ldy * static_cast<int64_t>(sizeof(float)));
        continue;
      }
      alignas(64) float own[kTile * kTile];
      store_transposed(words, reinterpret_cast<char*>(own));
      for (int64_t r = 0; r < down; ++r) std::copy_n(own + r * kTile, across, to + r * ldy);
    }
  }
}

}  // namespace rapt::kernels::x86
