#include "rapt/kernels/x86/split_tiles.h"

#include <algorithm>

#include "rapt/kernels/x86/tiles.h"
#include "rapt/kernels/x86/transpose.h"

namespace rapt::kernels::x86 {
namespace {

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

// While a block is multiplied: what the next blocks of the left operand and of c need.
struct Fetching {
  int64_t ldc, rows;            // of a block of c, fetched at each step of the inner size
  const float* next = nullptr;  // that block
  int64_t done = 0;

  void begin(const float* block) {
    next = block;
    done = 0;
  }
  [[gnu::always_inline]] inline void step(const char* ahead, int64_t place) {
    if (place == 0) {
      fetch_rows(next, ldc, std::min(kPanel, done), std::min(kPanel, done + rows));
      done += rows;
    }
    fetch_lines<8>(ahead + 512 * place);
  }
};

// An operand, 16 words at a time, in the order in which it is stored. Where it is packed the other
// way, a tile's words wait for the rest of the tile, and are transposed then.
class PackPiece {
 public:
  [[RAPT_AMX_TARGET]] explicit PackPiece(const Unpacked& operand)
      : s_(operand),
        transpose_((operand.stored == Stored::by_outer) != operand.left),
        panels_(blocks_of(operand.outer)),
        blocks_(blocks_of(operand.inner)),
        bad_(_mm512_setzero_ps()) {}

  int64_t count() const { return 2 * panels_ * blocks_ * lines(); }

  [[RAPT_AMX_TARGET, gnu::always_inline]] inline void run(int64_t) {
    char* const tile = static_cast<char*>(s_.to) +
                       (panel_ * blocks_ + block_) * kBlockBytes<kExactParts> + half_ * kTileBytes;
    if (line_ >= kTile) {
      store_transposed(words_[line_ - kTile], tile + (line_ - kTile) * kPartBytes);
    } else {
      const auto words = read();
      if (transpose_) {
        for (int p = 0; p < kExactParts; ++p) words_[p][line_] = words.part[p];
      } else {
        store(words, tile + 64 * line_);
      }
    }
    if (++line_ == lines()) advance();
  }

  [[RAPT_AMX_TARGET]] bool whole() const {
    return _mm512_cmp_ps_mask(_mm512_sub_ps(bad_, bad_), _mm512_setzero_ps(), _CMP_NEQ_UQ) == 0;
  }

 private:
  int64_t lines() const { return transpose_ ? kTile + kExactParts : kTile; }

  [[RAPT_AMX_TARGET, gnu::always_inline]] inline Words<kExactParts> read() {
    const int64_t first = panel_ * kPanel + half_ * kTile;  // of the outer size
    const int64_t outer = std::clamp<int64_t>(s_.outer - first, 0, kTile),
                  inner = std::min(kPanel, s_.inner - block_ * kPanel);
    if (s_.stored == Stored::by_inner) {
      const auto mask = static_cast<__mmask16>(inner > line_ ? (1u << outer) - 1 : 0);
      const float* const from =
          mask == 0 ? s_.from : s_.from + (block_ * kPanel + line_) * s_.ld + first;
      return words_across<kExactParts>(from, s_.ld, inner - line_, mask, bad_);
    }
    const bool there = line_ < outer;
    const float* const from = there ? s_.from + (first + line_) * s_.ld + block_ * kPanel : s_.from;
    return words_along<kExactParts>(from, s_.ld, there ? inner : 0, bad_);
  }

  [[gnu::always_inline]] inline void advance() {
    line_ = 0;
    half_ = 1 - half_;
    if (half_ == 1) return;
    if (s_.stored == Stored::by_inner) {
      if (++panel_ < panels_) return;
      panel_ = 0;
      ++block_;
    } else {
      if (++block_ < blocks_) return;
      block_ = 0;
      ++panel_;
    }
  }

  const Unpacked s_;
  const bool transpose_;
  const int64_t panels_, blocks_;
  int64_t panel_ = 0, block_ = 0, half_ = 0, line_ = 0;
  __m512 bad_;
  __m512i words_[kExactParts][kTile] = {};
};

// Two operands, one after the other.
class PackPieces {
 public:
  [[RAPT_AMX_TARGET]] explicit PackPieces(std::span<const Unpacked> operands)
      : first_(operands.empty() ? kNone : operands[0]),
        second_(operands.size() < 2 ? kNone : operands[1]),
        of_first_(first_.count()) {}

  int64_t count() const { return of_first_ + second_.count(); }
  [[RAPT_AMX_TARGET, gnu::always_inline]] inline void run(int64_t index) {
    (index < of_first_ ? first_ : second_).run(index);
  }
  [[RAPT_AMX_TARGET]] bool whole() const { return first_.whole() && second_.whole(); }

 private:
  static constexpr Unpacked kNone{nullptr, 0, Stored::by_outer, true, 0, 0, kExactParts, nullptr};
  PackPiece first_, second_;
  const int64_t of_first_;
};

// The next operands packed, and what the products need fetched.
struct PackingAndFetching {
  Paced<PackPieces> packing;
  Fetching fetching;

  void begin(const float* block) { fetching.begin(block); }
  [[RAPT_AMX_TARGET, gnu::always_inline]] inline void step(const char* ahead, int64_t place) {
    fetching.step(ahead, place);
    packing.step(ahead, place);
  }
};

}  // namespace

size_t packed_bytes(int64_t outer, int64_t inner, int parts) {
  return static_cast<size_t>(blocks_of(outer) * blocks_of(inner) * parts * kPartBytes);
}

bool pack(const Unpacked& o) {
  const bool transpose = (o.stored == Stored::by_outer) != o.left;
  char* const to = static_cast<char*>(o.to);
  if (o.parts == 1) return pack<1>(o.from, o.ld, o.stored, o.outer, o.inner, transpose, to), true;
  return pack<kExactParts>(o.from, o.ld, o.stored, o.outer, o.inner, transpose, to);
}

[[RAPT_AMX_TARGET]] bool multiply_while_packing(const PackedProduct& product,
                                                std::span<const Unpacked> next) {
  const std::span<const PackedProduct> one(&product, 1);
  const int64_t blocks = blocks_of(product.inner);
  PackingAndFetching beside{Paced(steps_of<kExactParts>(one), PackPieces(next)),
                            {.ldc = product.ldc, .rows = (kPanel + blocks - 1) / blocks}};
  multiply_all<kExactParts>(one, beside);
  beside.packing.finish();
  return beside.packing.piece().whole();
}

}  // namespace rapt::kernels::x86
