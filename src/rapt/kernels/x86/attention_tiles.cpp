#include "rapt/kernels/x86/attention_tiles.h"

#include "rapt/kernels/exp2_terms.h"
#include "rapt/kernels/x86/tiles.h"

namespace rapt::kernels::x86 {
namespace {

// 2^x as exp2-inl.h computes it.
[[RAPT_AMX_TARGET, gnu::always_inline]] inline __m512 exp2(__m512 x) {
  constexpr int kTerms = std::size(kExp2Single);
  const __m512 whole = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m512 r = _mm512_sub_ps(x, whole);
  __m512 y = _mm512_set1_ps(kExp2Single[kTerms - 1]);
#pragma GCC unroll 8
  for (int i = kTerms - 1; i-- > 0;) y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(kExp2Single[i]));
  y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(1.0f));
  const __mmask16 normal = _mm512_cmp_ps_mask(x, _mm512_set1_ps(-126.0f), _CMP_NLT_UQ);
  return _mm512_maskz_scalef_ps(normal, y, whole);
}

// Nothing beside the products.
struct Nothing {
  void begin(const float*) {}
  [[gnu::always_inline]] inline void step(const char*, int64_t) {}
};

// A row's 32 columns of Weighing at a time.
template <int Parts>
class WeighPiece {
 public:
  [[RAPT_AMX_TARGET]] explicit WeighPiece(const Weighing& w)
      : w_(w), blocks_(blocks_of(w.cols)), sum_(_mm512_setzero_ps()) {}

  int64_t count() const { return kPanel * blocks_; }

  [[RAPT_AMX_TARGET, gnu::always_inline]] inline void run(int64_t) {
    const bool there = row_ < w_.rows;
    const __mmask16 low = there ? 0xFFFF : 0,
                    high = there && block_ * kPanel + kTile < w_.cols ? 0xFFFF : 0;
    const float* const scores = w_.scores + row_ * w_.ld + block_ * kPanel;
    const __m512 base = _mm512_set1_ps(w_.base[row_]);
    __m512 a = _mm512_maskz_mov_ps(low, exp2(_mm512_sub_ps(_mm512_loadu_ps(scores), base)));
    __m512 b =
        _mm512_maskz_mov_ps(high, exp2(_mm512_sub_ps(_mm512_loadu_ps(scores + kTile), base)));
    sum_ = _mm512_add_ps(_mm512_add_ps(sum_, a), b);
    if (w_.keep != nullptr) {
      const uint32_t keep = w_.keep[row_ * blocks_ + block_];
      a = _mm512_maskz_mov_ps(static_cast<__mmask16>(keep), a);
      b = _mm512_maskz_mov_ps(static_cast<__mmask16>(keep >> 16), b);
    }
    __m512 bad = _mm512_setzero_ps();  // a NaN shows in the sum
    store(words_of<Parts>(a, b, bad), static_cast<char*>(w_.packed) + block_ * kBlockBytes<Parts> +
                                          row_ / kTile * kTileBytes + row_ % kTile * 64);
    if (++block_ < blocks_) return;
    block_ = 0;
    w_.sums[row_++] = _mm512_reduce_add_ps(sum_);
    sum_ = _mm512_setzero_ps();
  }

 private:
  const Weighing w_;
  const int64_t blocks_;
  int64_t row_ = 0, block_ = 0;
  __m512 sum_;
};

// Of Slopes: two rows 16 apart, 16 columns of each, at a time. What the left operand needs of the
// first half of a block's columns waits for the second.
template <int Parts>
class SlopePiece {
 public:
  explicit SlopePiece(const Slopes& s)
      : s_(s), down_(blocks_of(s.rows)), across_(blocks_of(s.cols)) {}

  int64_t count() const { return 2 * down_ * across_ * kTile; }

  [[RAPT_AMX_TARGET, gnu::always_inline]] inline void run(int64_t) {
    const int64_t col = block_ * kPanel + half_ * kTile;
    const int64_t right = (block_ * down_ + panel_) * kBlockBytes<Parts> + 64 * line_;
    const int64_t left = (panel_ * across_ + block_) * kBlockBytes<Parts> + 64 * line_;
    __m512 used[2], slope[2];
    for (int64_t r = 0; r < 2; ++r) {
      const int64_t row = panel_ * kPanel + r * kTile + line_;
      differentiate(row, col, used[r], slope[r]);
    }
    __m512 bad = _mm512_setzero_ps();  // the caller knows that there is none
    store(words_of<Parts>(used[0], used[1], bad),
          static_cast<char*>(s_.weights) + right + half_ * kTileBytes);
    pack(slope, static_cast<char*>(s_.d_scores_across) + right + half_ * kTileBytes,
         static_cast<char*>(s_.d_scores) + left);
    half_ = 1 - half_;
    if (half_ == 1) return;
    if (++block_ < across_) return;
    block_ = 0;
    if (++line_ < kTile) return;
    line_ = 0;
    ++panel_;
  }

 private:
  // Sixteen weights and gradients of scores, zeros where there are none.
  [[RAPT_AMX_TARGET, gnu::always_inline]] inline void differentiate(int64_t row, int64_t col,
                                                                    __m512& used,
                                                                    __m512& slope) const {
    const float* const scores = s_.scores + row * s_.ld + col;
    float* const d_weights = s_.d_weights + row * s_.ld + col;
    const __mmask16 mask = row < s_.rows && col < s_.cols ? 0xFFFF : 0;
    const __m512 weight = _mm512_maskz_mul_ps(
        mask, _mm512_set1_ps(s_.share[row]),
        exp2(_mm512_sub_ps(_mm512_loadu_ps(scores), _mm512_set1_ps(s_.most[row]))));
    __m512 d_weight = _mm512_loadu_ps(d_weights);
    used = weight;
    if (s_.keep != nullptr) {
      const auto keep = static_cast<__mmask16>(s_.keep[row * across_ + block_] >> (half_ * kTile));
      const __m512 kept = _mm512_set1_ps(s_.kept);
      used = _mm512_maskz_mul_ps(keep, kept, weight);
      d_weight = _mm512_maskz_mul_ps(keep, kept, d_weight);
    }
    const __m512 d_score =
        _mm512_maskz_mul_ps(mask, weight, _mm512_sub_ps(d_weight, _mm512_set1_ps(s_.delta[row])));
    if (s_.store) _mm512_mask_storeu_ps(d_weights, mask, d_score);
    slope = _mm512_mul_ps(_mm512_set1_ps(s_.scale), d_score);
  }

  [[RAPT_AMX_TARGET, gnu::always_inline]] inline void pack(const __m512 (&slope)[2], char* across,
                                                           char* along) {
    __m512 bad = _mm512_setzero_ps();
    if constexpr (Parts == 1) {
      store(words_of<1>(slope[0], slope[1], bad), across);
      for (int64_t r = 0; r < 2; ++r) {
        if (half_ == 0) {
          first_[r][0] = _mm512_castps_si512(slope[r]);
        } else {
          store(words_of<1>(_mm512_castsi512_ps(first_[r][0]), slope[r], bad),
                along + r * kTileBytes);
        }
      }
    } else {
      const Split s[2] = {split(slope[0], bad), split(slope[1], bad)};
      for (int p = 0; p < Parts; ++p) {
        _mm512_store_si512(across + p * kPartBytes, merged(s[0].part[p], s[1].part[p]));
        for (int64_t r = 0; r < 2; ++r) {
          if (half_ == 0) {
            first_[r][p] = s[r].part[p];
          } else {
            _mm512_store_si512(along + p * kPartBytes + r * kTileBytes,
                               merged(first_[r][p], s[r].part[p]));
          }
        }
      }
    }
  }

  const Slopes s_;
  const int64_t down_, across_;
  int64_t panel_ = 0, line_ = 0, block_ = 0, half_ = 0;
  __m512i first_[2][Parts] = {};
};

template <int Parts>
[[RAPT_AMX_TARGET]] void multiply_alone(std::span<const PackedProduct> products) {
  Nothing nothing;
  multiply_all<Parts>(products, nothing);
}

template <int Parts>
[[RAPT_AMX_TARGET]] void weigh_beside(std::span<const PackedProduct> products,
                                      const Weighing& weighing) {
  Paced<WeighPiece<Parts>> paced(steps_of<Parts>(products), WeighPiece<Parts>(weighing));
  multiply_all<Parts>(products, paced);
  paced.finish();
}

template <int Parts>
[[RAPT_AMX_TARGET]] void differentiate_beside(std::span<const PackedProduct> products,
                                              const Slopes& slopes) {
  Paced<SlopePiece<Parts>> paced(steps_of<Parts>(products), SlopePiece<Parts>(slopes));
  multiply_all<Parts>(products, paced);
  paced.finish();
}

}  // namespace

void multiply(std::span<const PackedProduct> products, int parts) {
  (parts == 1 ? multiply_alone<1> : multiply_alone<kExactParts>)(products);
}

void multiply(std::span<const PackedProduct> products, int parts, const Weighing& weighing) {
  (parts == 1 ? weigh_beside<1> : weigh_beside<kExactParts>)(products, weighing);
}

void multiply(std::span<const PackedProduct> products, int parts, const Slopes& slopes) {
  (parts == 1 ? differentiate_beside<1> : differentiate_beside<kExactParts>)(products, slopes);
}

}  // namespace rapt::kernels::x86
