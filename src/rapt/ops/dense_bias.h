// Dense tensors added to attention's scores, and their gradients.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "rapt/kernels/attention.h"
#include "rapt/tensor/mask.h"

namespace rapt {

// The sum of any number of terms; strides of 0 share a term over sentences, heads or queries.
template <class T>
class DenseBias : public kernels::ScoreBias<T> {
 public:
  // `keys` are the sentences of the keys.
  DenseBias(std::span<const Segment> keys, int64_t H) : keys_(keys), H_(H) {}

  // With `gradient` set, the term's gradient is added up there, at the same places.
  void add_term(const T* values, const ScoreStrides& at, T* gradient) {
    terms_.push_back({values, gradient, at});
    if (gradient == nullptr) return;
    collects_ = true;
    share_b_ = share_b_ || (at.b == 0 && !at.by_key_row);
    share_h_ = share_h_ || at.h == 0;
  }

  void add(const kernels::ScoreTile& tile, T* scores, int64_t ld) const override {
    for (const Term& term : terms_) {
      for (int64_t i = 0; i < tile.rows; ++i) {
        const T* from = term.values + at(term, tile, i);
        T* to = scores + i * ld;
        for (int64_t j = 0; j < tile.cols; ++j) to[j] += from[j];
      }
    }
  }

  void take_gradient(const kernels::ScoreTile& tile, const T* dscores, int64_t ld) override {
    for (const Term& term : terms_) {
      if (term.gradient == nullptr) continue;
      for (int64_t i = 0; i < tile.rows; ++i) {
        const T* from = dscores + i * ld;
        T* to = term.gradient + at(term, tile, i);
        for (int64_t j = 0; j < tile.cols; ++j) to[j] += from[j];
      }
    }
  }

  int64_t gradient_group(int64_t b, int64_t h) const override {
    if (!collects_) return -1;
    return (share_b_ ? 0 : b) * (share_h_ ? 1 : H_) + (share_h_ ? 0 : h);
  }

 private:
  struct Term {
    const T* values;
    T* gradient;
    ScoreStrides at;
  };
  int64_t at(const Term& term, const kernels::ScoreTile& tile, int64_t i) const {
    const int64_t sentence =
        term.at.by_key_row ? keys_[static_cast<size_t>(tile.b)].row : tile.b * term.at.b;
    return sentence + tile.h * term.at.h + (tile.q0 + i) * term.at.q + tile.k0;
  }

  std::span<const Segment> keys_;
  int64_t H_;
  std::vector<Term> terms_;
  bool collects_ = false;  // a gradient of any term,
  bool share_b_ = false;   // and whether those of sentences, or of heads, meet in one place
  bool share_h_ = false;
};

}  // namespace rapt
