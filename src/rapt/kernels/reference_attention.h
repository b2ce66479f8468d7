// Attention by plain loops, in any type: what the tiled kernel is held against.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <vector>

#include "rapt/base/random.h"
#include "rapt/kernels/attention.h"

namespace rapt::kernels::reference {

template <class T>
bool may_see(const AttentionArgs<T>& args, size_t b, int64_t h, int64_t i, int64_t j) {
  const Segment& queries = args.queries[b];
  const Segment& keys = args.keys[b];
  const int64_t distance = queries.position + i - (keys.position + j);
  if (args.mask.causal && distance < 0) return false;
  if (args.mask.window >= 0 && std::abs(distance) > args.mask.window) return false;
  for (const KeepMatrix& m : args.mask.matrices) {
    const int64_t start = m.offset_by_key_row ? keys.row : static_cast<int64_t>(b) * m.stride_b;
    if (m.keep[start + h * m.stride_h + i * m.stride_q + j] == 0) return false;
  }
  return true;
}

// What one query and head make of the keys of their sentence.
template <class T>
struct Row {
  std::vector<T> weights;  // the softmax; zeros where nothing is seen
  std::vector<T> used;     // the same after dropout
  SoftmaxSum<T> sum{-std::numeric_limits<T>::infinity(), 0};
};

// The factor of element (i, j): 0 if it is dropped.
template <class T>
T dropout_factor(const AttentionArgs<T>& args, size_t b, int64_t h, int64_t i, int64_t j) {
  if (args.dropout.probability == 0) return 1;
  const uint32_t word =
      philox_element(philox_key_of_head(args.dropout.key, h), args.queries[b].sample,
                     static_cast<uint32_t>(args.queries[b].position + i),
                     static_cast<uint32_t>(args.keys[b].position + j));
  const bool dropped = word < dropout_threshold(args.dropout.probability);
  return dropped ? T(0) : static_cast<T>(1 / (1 - args.dropout.probability));
}

template <class T>
Row<T> attention_row(const AttentionArgs<T>& args, size_t b, int64_t h, int64_t i) {
  const int64_t count = args.keys[b].count;
  Row<T> row{std::vector<T>(static_cast<size_t>(count)),
             std::vector<T>(static_cast<size_t>(count))};
  if (args.bias != nullptr) {
    args.bias->add({static_cast<int64_t>(b), h, i, 0, 1, count}, row.weights.data(), count);
  }
  T most = -std::numeric_limits<T>::infinity();
  for (int64_t j = 0; j < count; ++j) {
    const T* q = args.q + args.q_at.at(args.queries[b], h, i);
    const T* k = args.k + args.k_at.at(args.keys[b], args.key_head(h), j);
    T product = 0;
    for (int64_t d = 0; d < args.Dk; ++d) product += q[d] * k[d];
    T& score = row.weights[static_cast<size_t>(j)];
    score += static_cast<T>(args.scale) * product;
    if (!may_see(args, b, h, i, j)) score = -std::numeric_limits<T>::infinity();
    most = std::max(most, score);
  }
  if (most == -std::numeric_limits<T>::infinity()) {
    std::fill(row.weights.begin(), row.weights.end(), T(0));
    return row;
  }
  T total = 0;
  for (T& weight : row.weights) total += weight = std::exp(weight - most);
  for (int64_t j = 0; j < count; ++j) {
    T& weight = row.weights[static_cast<size_t>(j)];
    weight /= total;
    row.used[static_cast<size_t>(j)] = weight * dropout_factor(args, b, h, i, j);
  }
  row.sum = {most * std::numbers::log2e_v<T>, total};
  return row;
}

// As kernels::attention, kernels::attention_grad and kernels::attention_weights.
template <class T>
void attention(const AttentionArgs<T>& args, T* out, const HeadStrides& out_at,
               SoftmaxSum<T>* sums) {
  for (size_t b = 0; b < args.queries.size(); ++b) {
    for (int64_t i = 0; i < args.queries[b].count; ++i) {
      for (int64_t h = 0; h < args.H; ++h) {
        const Row<T> row = attention_row(args, b, h, i);
        T* to = out + out_at.at(args.queries[b], h, i);
        std::fill(to, to + args.Dv, T(0));
        for (int64_t j = 0; j < args.keys[b].count; ++j) {
          const T* v = args.v + args.v_at.at(args.keys[b], args.key_head(h), j);
          for (int64_t d = 0; d < args.Dv; ++d) to[d] += row.used[static_cast<size_t>(j)] * v[d];
        }
        if (sums != nullptr) sums[(args.queries[b].row + i) * args.H + h] = row.sum;
      }
    }
  }
}

template <class T>
void attention_weights(const AttentionArgs<T>& args, int64_t b, int64_t h, T* weights,
                       int64_t ldw) {
  for (int64_t i = 0; i < args.queries[static_cast<size_t>(b)].count; ++i) {
    const Row<T> row = attention_row(args, static_cast<size_t>(b), h, i);
    std::copy(row.weights.begin(), row.weights.end(), weights + i * ldw);
  }
}

// Adds to dq, dk and dv (each may be null), for one query and head.
template <class T>
void add_row_gradients(const AttentionArgs<T>& args, const AttentionGrads<T>& grads, size_t b,
                       int64_t h, int64_t i) {
  const int64_t count = args.keys[b].count, head = args.key_head(h);
  const Segment &queries = args.queries[b], &keys = args.keys[b];
  const Row<T> row = attention_row(args, b, h, i);
  std::vector<T> d_weights(static_cast<size_t>(count)), d_scores(static_cast<size_t>(count));
  T mean = 0;  // of the gradients of the weights, weighted by them
  for (int64_t j = 0; j < count; ++j) {
    const size_t at = static_cast<size_t>(j);
    if (grads.d_weights != nullptr) {
      d_weights[at] =
          grads.d_weights[(static_cast<int64_t>(b) * args.H + h) * grads.weights_of_head +
                          i * grads.ldw + j];
    } else {
      const T* v = args.v + args.v_at.at(keys, head, j);
      const T* d_out = grads.d_out + grads.d_out_at.at(queries, h, i);
      for (int64_t d = 0; d < args.Dv; ++d) {
        d_weights[at] += d_out[d] * v[d];
        if (grads.dv != nullptr)
          grads.dv[grads.dv_at.at(keys, head, j) + d] += row.used[at] * d_out[d];
      }
      d_weights[at] *= dropout_factor(args, b, h, i, j);
    }
    mean += row.weights[at] * d_weights[at];
  }
  for (int64_t j = 0; j < count; ++j) {
    const size_t at = static_cast<size_t>(j);
    d_scores[at] = row.weights[at] * (d_weights[at] - mean);
    const T step = static_cast<T>(args.scale) * d_scores[at];
    const T *q = args.q + args.q_at.at(queries, h, i), *k = args.k + args.k_at.at(keys, head, j);
    for (int64_t d = 0; d < args.Dk; ++d) {
      if (grads.dq != nullptr) grads.dq[grads.dq_at.at(queries, h, i) + d] += step * k[d];
      if (grads.dk != nullptr) grads.dk[grads.dk_at.at(keys, head, j) + d] += step * q[d];
    }
  }
  if (args.bias != nullptr && args.bias->gradient_group(static_cast<int64_t>(b), h) >= 0) {
    args.bias->take_gradient({static_cast<int64_t>(b), h, i, 0, 1, count}, d_scores.data(), count);
  }
}

template <class T>
void clear_rows(const Segment& rows, int64_t heads, int64_t width, T* gradient,
                const HeadStrides& at, bool keep) {
  if (gradient == nullptr || keep) return;
  for (int64_t h = 0; h < heads; ++h) {
    for (int64_t i = 0; i < rows.count; ++i) std::fill_n(gradient + at.at(rows, h, i), width, T(0));
  }
}

template <class T>
void attention_grad(const AttentionArgs<T>& args, const AttentionGrads<T>& grads) {
  const int64_t key_heads = args.key_heads();
  for (size_t b = 0; b < args.queries.size(); ++b) {
    clear_rows(args.queries[b], args.H, args.Dk, grads.dq, grads.dq_at, grads.add_dq);
    clear_rows(args.keys[b], key_heads, args.Dk, grads.dk, grads.dk_at, grads.add_dk);
    clear_rows(args.keys[b], key_heads, args.Dv, grads.dv, grads.dv_at, grads.add_dv);
    for (int64_t h = 0; h < args.H; ++h) {
      for (int64_t i = 0; i < args.queries[b].count; ++i) add_row_gradients(args, grads, b, h, i);
    }
  }
}

}  // namespace rapt::kernels::reference
