// Products by the multiply-adds of AVX-512, of numbers in f32 or of pairs in bf16 (vdpbf16ps), sums
// in f32; single-threaded calls.
//
// Operands are packed first, by their inner index, as words of 32 bits: an f32 number, or two bf16
// numbers whose inner indices follow one another, the second 0 behind an odd end. A strip is up to
// kStrip rows of the left operand, 16 words for each inner word; a panel is kPanel columns of the
// right one, as many words for each inner word. Both are filled up with zeros.
#pragma once

#include <cstdint>

#include "rapt/kernels/types.h"
#include "rapt/kernels/x86/split_tiles.h"

namespace rapt::kernels::x86 {

inline constexpr int64_t kStrip = 14;  // rows whose sums fill the registers beside two of a panel
inline constexpr int64_t kStripWords = 16;
inline constexpr int64_t kStripSums = kStrip * kPanel;  // of a strip and a panel, row by row

template <class T>
inline constexpr int64_t kNumbersOfWord = 4 / static_cast<int64_t>(sizeof(T));

// Words of `inner` numbers.
template <class T>
constexpr int64_t words_of(int64_t inner) {
  return (inner + kNumbersOfWord<T> - 1) / kNumbersOfWord<T>;
}

// An operand as it lies in memory, `ld` elements from one stored row to the next. T is float or
// bf16.
template <class T>
struct StoredOperand {
  const T* from;
  int64_t ld;
  Stored stored;

  // The same from an outer and an inner index on.
  StoredOperand at(int64_t outer, int64_t inner) const {
    const bool by_outer = stored == Stored::by_outer;
    return {from + (by_outer ? outer * ld + inner : inner * ld + outer), ld, stored};
  }
};

// Packs the strips of `rows` rows, each words_of<T>(inner) kStripWords words, at `to`, aligned to
// 64 bytes.
template <class T>
void pack_strips(const StoredOperand<T>& left, int64_t rows, int64_t inner, uint32_t* to);

// Packs the panels of `cols` columns, each words_of<T>(inner) kPanel words, aligned as above.
template <class T>
void pack_word_panels(const StoredOperand<T>& right, int64_t cols, int64_t inner, uint32_t* to);

// sums (kStrip, kPanel), aligned to 64 bytes, = a strip times a panel, or += it; of the first
// `rows` rows, and perhaps of one more.
template <class T>
void multiply_strip(const uint32_t* strip, const uint32_t* panel, int64_t words, int64_t rows,
                    float* sums, bool add);

// What becomes of the sums: out (rows, cols) = sums + bias (cols, or null), or out += it, rounded
// once.
template <class Out>
struct StripEnd {
  const float* bias;
  Out* out;
  int64_t ld;
  bool accumulate;

  // The same from a row and a column on.
  StripEnd at(int64_t row, int64_t col) const {
    return {bias == nullptr ? nullptr : bias + col, out + row * ld + col, ld, accumulate};
  }
};

// Fetches the lines that finish_strip() will write.
template <class Out>
void fetch_results(int64_t rows, const StripEnd<Out>& end);
template <class Out>
void finish_strip(const float* sums, int64_t rows, int64_t cols, const StripEnd<Out>& end);

}  // namespace rapt::kernels::x86
