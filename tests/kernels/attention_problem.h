// An attention problem with memory of its own, for the tests: the same numbers in f32 and in f64.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numbers>
#include <span>
#include <vector>

#include "rapt/base/random.h"
#include "rapt/kernels/attention.h"
#include "rapt/kernels/reference_attention.h"
#include "tests/testing/testing.h"

namespace rapt::testing {

struct AttentionShape {
  std::vector<int64_t> queries = {}, keys = {};  // lengths of the sentences
  int64_t H = 2, Dk = 8, Dv = 8;
  int64_t gap = 0;      // rows between sentences
  int64_t padding = 0;  // elements between rows
  int64_t offset = 0;   // of the first query's position from the first key's
  double scale = 0.5;
  int64_t Hk = 0;  // heads of keys; 0: H
};

// A bias for each query and key, (slots, most queries, most keys), and its gradient. Each sentence
// and head has a slot of its own (no groups: without a gradient), or they share as many as there
// are groups.
template <class T>
class DenseBias : public kernels::ScoreBias<T> {
 public:
  DenseBias(int64_t B, int64_t H, int64_t Tq, int64_t Tk, int64_t groups)
      : H_(H),
        Tq_(Tq),
        Tk_(Tk),
        groups_(groups),
        values(static_cast<size_t>(B * H * Tq * Tk)),
        gradient(values.size()) {}

  void add(const kernels::ScoreTile& tile, T* scores, int64_t ld) const override {
    for (int64_t i = 0; i < tile.rows; ++i) {
      for (int64_t j = 0; j < tile.cols; ++j) scores[i * ld + j] += values[index(tile, i, j)];
    }
  }
  void take_gradient(const kernels::ScoreTile& tile, const T* d_scores, int64_t ld) override {
    for (int64_t i = 0; i < tile.rows; ++i) {
      for (int64_t j = 0; j < tile.cols; ++j) gradient[index(tile, i, j)] += d_scores[i * ld + j];
    }
  }
  int64_t gradient_group(int64_t b, int64_t h) const override {
    return groups_ == 0 ? -1 : (b * H_ + h) % groups_;
  }

 private:
  size_t index(const kernels::ScoreTile& tile, int64_t i, int64_t j) const {
    const int64_t head = tile.b * H_ + tile.h, slot = groups_ == 0 ? head : head % groups_;
    return static_cast<size_t>((slot * Tq_ + tile.q0 + i) * Tk_ + tile.k0 + j);
  }
  int64_t H_, Tq_, Tk_, groups_;

 public:
  std::vector<T> values, gradient;
};

// What no kernel may touch has this value.
inline constexpr double kUntouched = 77;

template <class T>
class AttentionProblem {
 public:
  explicit AttentionProblem(const AttentionShape& shape, uint64_t seed = 1)
      : shape_(shape), rng_(seed) {
    const int64_t query_rows = place(shape.queries, shape.offset, queries),
                  key_rows = place(shape.keys, 0, keys);
    args.queries = queries;
    args.keys = keys;
    args.H = shape.H;
    args.Dk = shape.Dk;
    args.Dv = shape.Dv;
    args.scale = shape.scale;
    args.Hk = shape.Hk;
    const int64_t Hk = args.key_heads(), wide = shape.H * shape.Dk + shape.padding,
                  key_wide = Hk * shape.Dk + shape.padding,
                  value_wide = Hk * shape.Dv + shape.padding,
                  out_wide = shape.H * shape.Dv + shape.padding;
    q = random(query_rows * wide);
    k = random(key_rows * key_wide);
    v = random(key_rows * value_wide);
    d_out = random(query_rows * out_wide);
    out = dq = dk = dv = {};
    out.assign(d_out.size(), T(kUntouched));
    dq.assign(q.size(), T(kUntouched));
    dk.assign(k.size(), T(kUntouched));
    dv.assign(v.size(), T(kUntouched));
    sums.assign(static_cast<size_t>(query_rows * shape.H), {T(kUntouched), T(kUntouched)});
    args.q = q.data();
    args.k = k.data();
    args.v = v.data();
    const auto of = [](int64_t ld, int64_t D) { return kernels::HeadStrides::packed(ld, D); };
    args.q_at = of(wide, shape.Dk);
    args.k_at = of(key_wide, shape.Dk);
    args.v_at = of(value_wide, shape.Dv);
    grads.out = out.data();
    grads.d_out = d_out.data();
    grads.sums = sums.data();
    grads.out_at = grads.d_out_at = of(out_wide, shape.Dv);
    grads.dq = dq.data();
    grads.dk = dk.data();
    grads.dv = dv.data();
    grads.dq_at = args.q_at;
    grads.dk_at = args.k_at;
    grads.dv_at = args.v_at;
  }
  AttentionProblem(const AttentionProblem&) = delete;
  AttentionProblem& operator=(const AttentionProblem&) = delete;

  std::vector<T> random(int64_t count) {
    std::vector<T> values(static_cast<size_t>(count));
    for (T& value : values) value = static_cast<T>(static_cast<float>(rng_.normal()));
    return values;
  }

  void add_bias(int64_t groups) {
    bias = std::make_unique<DenseBias<T>>(std::ssize(queries), shape_.H, longest(shape_.queries),
                                          longest(shape_.keys), groups);
    bias->values = random(std::ssize(bias->values));
    args.bias = bias.get();
  }

  // A matrix of permissions for each sentence, head, query and key; one key in `one_in` is hidden.
  void add_keep(int64_t one_in) {
    const int64_t Tq = longest(shape_.queries), Tk = longest(shape_.keys);
    keep.resize(static_cast<size_t>(std::ssize(queries) * shape_.H * Tq * Tk));
    for (uint8_t& one : keep) one = rng_.below(one_in) != 0;
    matrices.push_back({keep.data(), shape_.H * Tq * Tk, Tq * Tk, Tk, false});
    args.mask.matrices = matrices;
  }
  // A permission for each row of keys.
  void add_keep_of_keys(int64_t one_in) {
    keep_of_keys.resize(k.size());
    for (uint8_t& one : keep_of_keys) one = rng_.below(one_in) != 0;
    matrices.push_back({keep_of_keys.data(), 0, 0, 0, true});
    args.mask.matrices = matrices;
  }

  void forward() { kernels::attention(args, out.data(), grads.out_at, sums.data()); }
  void backward() { kernels::attention_grad(args, grads); }
  void reference() {
    kernels::reference::attention(args, out.data(), grads.out_at, sums.data());
    kernels::reference::attention_grad(args, grads);
  }

  std::span<const T> output(size_t b, int64_t i) const {
    return {out.data() + (queries[b].row + i) * grads.out_at.row,
            static_cast<size_t>(shape_.H * shape_.Dv)};
  }

  kernels::AttentionArgs<T> args;
  kernels::AttentionGrads<T> grads;
  std::vector<kernels::Segment> queries, keys;
  std::vector<T> q, k, v, d_out, out, dq, dk, dv;
  std::vector<kernels::SoftmaxSum<T>> sums;
  std::unique_ptr<DenseBias<T>> bias;
  std::vector<uint8_t> keep, keep_of_keys;
  std::vector<kernels::KeepMatrix> matrices;

 private:
  static int64_t longest(const std::vector<int64_t>& lengths) {
    return lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
  }
  int64_t place(const std::vector<int64_t>& lengths, int64_t position,
                std::vector<kernels::Segment>& segments) const {
    int64_t row = shape_.gap;
    for (const int64_t length : lengths) {
      segments.push_back({row, length, position + 3, 100 + segments.size()});
      row += length + shape_.gap;
    }
    return row;
  }

  AttentionShape shape_;
  Rng rng_;
};

// As relative_difference(), among the elements that are finite and that a kernel may touch; the
// others must be equal.
template <class T>
double difference(std::vector<T> got, std::vector<double> want) {
  for (size_t i = 0; i < want.size() && got.size() == want.size(); ++i) {
    if (std::isfinite(want[i]) && want[i] != kUntouched) continue;
    if (static_cast<double>(got[i]) != want[i]) return INFINITY;
    got[i] = 0;
    want[i] = 0;
  }
  return relative_difference<T, double>(got, want);
}

// The logarithms of the softmax's denominators.
template <class T>
std::vector<T> logarithms(const std::vector<kernels::SoftmaxSum<T>>& sums) {
  std::vector<T> logs;
  for (const kernels::SoftmaxSum<T>& sum : sums) {
    logs.push_back(sum.most == T(kUntouched)
                       ? sum.most
                       : static_cast<T>(static_cast<double>(sum.most) * std::numbers::ln2 +
                                        std::log(static_cast<double>(sum.total))));
  }
  return logs;
}

// Everything that forward and backward computed is near the f64 problem's.
template <class T>
void expect_near(const AttentionProblem<T>& got, const AttentionProblem<double>& want) {
  const double bound = sizeof(T) == 4 ? 1e-5 : 1e-12;
  EXPECT_LE(difference(got.out, want.out), bound);
  EXPECT_LE(difference(logarithms(got.sums), logarithms(want.sums)), bound);
  EXPECT_LE(difference(got.dq, want.dq), bound);
  EXPECT_LE(difference(got.dk, want.dk), bound);
  EXPECT_LE(difference(got.dv, want.dv), bound);
  if (got.bias != nullptr) {
    EXPECT_LE(difference(got.bias->gradient, want.bias->gradient), bound);
  }
}

// The same bits in every element.
template <class T>
bool same_bits(std::span<const T> a, std::span<const T> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return same_bits(std::span<const T>(a), std::span<const T>(b));
}

}  // namespace rapt::testing
