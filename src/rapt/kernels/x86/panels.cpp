#include "rapt/kernels/x86/panels.h"

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "rapt/kernels/x86/bf16_ends.h"
#include "rapt/kernels/x86/tiles.h"
#include "rapt/kernels/x86/transpose.h"

namespace rapt::kernels::x86 {
namespace {

// Numbers of T in 16 words.
template <class T>
inline constexpr int64_t kVector = kTile* kNumbersOfWord<T>;

// Asks for the line that stands `distance` numbers on, as far as there is anything.
template <class T>
[[gnu::always_inline]] inline void fetch(const T* from, int64_t distance) {
  const auto at = reinterpret_cast<uintptr_t>(from) + static_cast<uintptr_t>(distance) * sizeof(T);
  _mm_prefetch(reinterpret_cast<const char*>(at), _MM_HINT_T0);
}

// The first `count` numbers of 16 words that lie side by side, and zeros.
template <class T>
[[RAPT_BF16_TARGET, gnu::always_inline]] inline __m512i load_words(const T* from, int64_t count) {
  const uint32_t mask = mask_of(std::min(count, kVector<T>));
  if constexpr (std::is_same_v<T, float>) {
    return _mm512_castps_si512(_mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), from));
  } else {
    return _mm512_maskz_loadu_epi16(mask, from);
  }
}

// Up to 16 rows that are stored one after the other, turned around: 16 words for each inner word,
// `stride` words apart. The next ones are fetched, which stand `ahead` rows on.
template <class T>
[[RAPT_BF16_TARGET]] void pack_turned(const T* from, int64_t ld, int64_t outer, int64_t inner,
                                      uint32_t* to, int64_t stride, int64_t ahead) {
  for (int64_t k = 0; k < inner; k += kVector<T>, to += kTile * stride) {
    __m512i words[kTile];
    for (int64_t i = 0; i < kTile; ++i) {
      const T* const row = from + i * ld + k;
      words[i] = i < outer ? load_words(row, inner - k) : _mm512_setzero_si512();
      fetch(row, ahead * ld);
    }
    if (inner - k >= kVector<T>) {
      store_transposed(words, reinterpret_cast<char*>(to), 4 * stride);
      continue;
    }
    alignas(64) uint32_t turned[kTile * kTile];
    store_transposed(words, reinterpret_cast<char*>(turned));
    for (int64_t w = 0; w < words_of<T>(inner - k); ++w)
      _mm512_store_si512(to + w * stride, _mm512_load_si512(turned + w * kTile));
  }
}

// The word `word` of up to 16 columns of a matrix that is stored by its inner index.
template <class T>
[[RAPT_BF16_TARGET, gnu::always_inline]] inline __m512i words_across(const T* from, int64_t ld,
                                                                     int64_t word, int64_t inner,
                                                                     int64_t outer) {
  constexpr int64_t kAhead = 8;  // stored rows
  const auto mask = static_cast<__mmask16>(mask_of(std::min(outer, kTile)));
  const int64_t k = word * kNumbersOfWord<T>;
  fetch(from, (k + kAhead) * ld);
  if constexpr (std::is_same_v<T, float>) {
    return _mm512_castps_si512(_mm512_maskz_loadu_ps(mask, from + k * ld));
  } else {
    fetch(from, (k + kAhead + 1) * ld);
    const __m512i even = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, from + k * ld));
    if (k + 1 == inner) return even;
    const __m512i odd = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, from + (k + 1) * ld));
    return _mm512_or_si512(even, _mm512_slli_epi32(odd, 16));
  }
}

// `b` has words of 16 columns, `a` one word in all lanes.
template <class T>
[[RAPT_BF16_TARGET, gnu::always_inline]] inline __m512 multiply_add(__m512 sum, __m512i a,
                                                                    __m512i b) {
  if constexpr (std::is_same_v<T, float>) {
    return _mm512_fmadd_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), sum);
  } else {
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
  }
}

template <class T, int Rows>
[[RAPT_BF16_TARGET]] void multiply_rows(const uint32_t* strip, const uint32_t* panel, int64_t words,
                                        float* sums, bool add) {
  constexpr int64_t kAhead = 16;  // words: operands come from the second cache
  __m512 s[Rows][2];
#pragma GCC unroll 14
  for (int r = 0; r < Rows; ++r) {
    s[r][0] = add ? _mm512_load_ps(sums + r * kPanel) : _mm512_setzero_ps();
    s[r][1] = add ? _mm512_load_ps(sums + r * kPanel + kTile) : _mm512_setzero_ps();
  }
  for (int64_t w = 0; w < words; ++w, strip += kStripWords, panel += kPanel) {
    fetch(strip, kAhead * kStripWords);
    fetch(panel, kAhead * kPanel);
    fetch(panel, kAhead * kPanel + kTile);
    const __m512i first = _mm512_load_si512(panel), second = _mm512_load_si512(panel + kTile);
#pragma GCC unroll 14
    for (int r = 0; r < Rows; ++r) {
      const __m512i a = _mm512_set1_epi32(static_cast<int>(strip[r]));
      s[r][0] = multiply_add<T>(s[r][0], a, first);
      s[r][1] = multiply_add<T>(s[r][1], a, second);
    }
  }
#pragma GCC unroll 14
  for (int r = 0; r < Rows; ++r) {
    _mm512_store_ps(sums + r * kPanel, s[r][0]);
    _mm512_store_ps(sums + r * kPanel + kTile, s[r][1]);
  }
}

using MultiplyRows = void (*)(const uint32_t*, const uint32_t*, int64_t, float*, bool);

// For each even number of rows.
template <class T, size_t... I>
constexpr std::array<MultiplyRows, sizeof...(I)> by_rows(std::index_sequence<I...>) {
  return {multiply_rows<T, 2 * (static_cast<int>(I) + 1)>...};
}

[[RAPT_BF16_TARGET, gnu::always_inline]] inline Row32 sum_of(const Row32& a, const Row32& b) {
  return {_mm512_add_ps(a.first, b.first), _mm512_add_ps(a.second, b.second)};
}

[[RAPT_BF16_TARGET, gnu::always_inline]] inline Row32 load_row(const float* from, int64_t cols) {
  const uint32_t mask = mask_of(cols);
  return {_mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), from),
          _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> 16), from + kTile)};
}
[[RAPT_BF16_TARGET, gnu::always_inline]] inline Row32 load_row(const bf16* from, int64_t cols) {
  return load_bf16(from, cols);
}

[[RAPT_BF16_TARGET, gnu::always_inline]] inline void store_row(const Row32& v, float* to,
                                                               int64_t cols) {
  const uint32_t mask = mask_of(cols);
  _mm512_mask_storeu_ps(to, static_cast<__mmask16>(mask), v.first);
  _mm512_mask_storeu_ps(to + kTile, static_cast<__mmask16>(mask >> 16), v.second);
}
[[RAPT_BF16_TARGET, gnu::always_inline]] inline void store_row(const Row32& v, bf16* to,
                                                               int64_t cols) {
  store_bf16(rounded(v), to, cols, false);
}

// All strips or panels, row by row of what is stored by its inner index, as memory is read fastest:
// `width` rows or columns make one, whose words for an inner word are kTile times `vectors`.
template <class T>
[[RAPT_BF16_TARGET]] void pack_across(const T* from, int64_t ld, int64_t outer, int64_t inner,
                                      int64_t width, int64_t vectors, uint32_t* to) {
  const int64_t words = words_of<T>(inner), row = vectors * kTile;
  for (int64_t w = 0; w < words; ++w, to += row) {
    uint32_t* at = to;
    for (int64_t i = 0; i < outer; i += width, at += words * row) {
      const int64_t count = std::min(width, outer - i);
      for (int64_t v = 0; v < row; v += kTile) {
        const int64_t some = std::max<int64_t>(count - v, 0);
        _mm512_store_si512(at + v, words_across(from + i + v, ld, w, inner, some));
      }
    }
  }
}

template <class Out>
[[RAPT_BF16_TARGET]] void finish_rows(const float* sums, int64_t rows, int64_t cols,
                                      const StripEnd<Out>& end) {
  Row32 bias = {_mm512_setzero_ps(), _mm512_setzero_ps()};
  if (end.bias != nullptr) bias = load_row(end.bias, cols);
  for (int64_t r = 0; r < rows; ++r) {
    Out* const to = end.out + r * end.ld;
    Row32 v = sum_of(load_sums(sums + r * kPanel), bias);
    if (end.accumulate) v = sum_of(load_row(to, cols), v);
    store_row(v, to, cols);
  }
}

}  // namespace

template <class T>
void pack_strips(const StoredOperand<T>& left, int64_t rows, int64_t inner, uint32_t* to) {
  const auto [from, ld, stored] = left;
  if (stored == Stored::by_inner) return pack_across(from, ld, rows, inner, kStrip, 1, to);
  for (int64_t row = 0; row < rows; row += kStrip, to += words_of<T>(inner) * kStripWords) {
    const int64_t count = std::min(kStrip, rows - row);
    pack_turned(from + row * ld, ld, count, inner, to, kStripWords, kStrip);
  }
}

template <class T>
void pack_word_panels(const StoredOperand<T>& right, int64_t cols, int64_t inner, uint32_t* to) {
  const auto [from, ld, stored] = right;
  if (stored == Stored::by_inner) return pack_across(from, ld, cols, inner, kPanel, 2, to);
  for (int64_t col = 0; col < cols; col += kPanel, to += words_of<T>(inner) * kPanel) {
    for (const int64_t half : {int64_t{0}, kTile}) {
      const int64_t count = std::clamp<int64_t>(cols - col - half, 0, kTile);
      pack_turned(from + (col + half) * ld, ld, count, inner, to + half, kPanel, kTile);
    }
  }
}

template <class T>
void multiply_strip(const uint32_t* strip, const uint32_t* panel, int64_t words, int64_t rows,
                    float* sums, bool add) {
  static constexpr auto kByRows = by_rows<T>(std::make_index_sequence<kStrip / 2>());
  kByRows[static_cast<size_t>((rows - 1) / 2)](strip, panel, words, sums, add);
}

template <class Out>
void fetch_results(int64_t rows, const StripEnd<Out>& end) {
  constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(Out));
  for (int64_t r = 0; r < rows; ++r) {
    Out* const row = end.out + r * end.ld;
    for (int64_t c = 0; c < kPanel; c += kLine) __builtin_prefetch(row + c, 1);
  }
}

template <class Out>
void finish_strip(const float* sums, int64_t rows, int64_t cols, const StripEnd<Out>& end) {
  finish_rows(sums, rows, cols, end);
}

#define RAPT_INSTANTIATE(T)                                                                   \
  template void pack_strips(const StoredOperand<T>&, int64_t, int64_t, uint32_t*);            \
  template void pack_word_panels(const StoredOperand<T>&, int64_t, int64_t, uint32_t*);       \
  template void multiply_strip<T>(const uint32_t*, const uint32_t*, int64_t, int64_t, float*, \
                                  bool);                                                      \
  template void fetch_results(int64_t, const StripEnd<T>&);                                   \
  template void finish_strip(const float*, int64_t, int64_t, const StripEnd<T>&);
RAPT_INSTANTIATE(float)
RAPT_INSTANTIATE(bf16)
#undef RAPT_INSTANTIATE

}  // namespace rapt::kernels::x86
