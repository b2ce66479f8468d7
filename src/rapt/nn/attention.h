// Multi-head scaled dot-product attention, Vaswani et al. 2017, section 3.2.
//
// Sizes: Nq, Nk tokens of the queries and the memory, C model width, H heads, Dk width of a head's
// queries and keys, Dv of its values.
#pragma once

#include "rapt/nn/cache.h"
#include "rapt/nn/linear.h"
#include "rapt/tensor/score_bias.h"

namespace rapt::nn {

struct AttentionOptions {
  int64_t d_model = 512;
  int64_t nhead = 8;
  int64_t d_qk = 0;    // a head; 0: d_model / nhead, which must then be a whole number
  int64_t d_v = 0;     // a head; 0: d_model / nhead
  double dropout = 0;  // of the weights
  bool bias = true;
  int64_t kdim = 0, vdim = 0;  // widths of what keys and values are made from; 0: d_model
};

// Checks the options and fills in the widths that are 0. Throws Error that says which numbers
// contradict each other.
AttentionOptions checked(AttentionOptions options);

class Attention : public Module {
 public:
  Attention(const AttentionOptions& options, const Init& init);

  // Self-attention passes x as both; cross-attention passes the encoder's output as memory.
  // query (Nq, C), memory (Nk, C) -> (Nq, C)
  // Each sentence of `q` attends within the sentence of `k` with the same index. A query that
  // `terms` let see no key yields the output bias alone. Gives the weights to the pass if they are
  // wanted. Throws Error on shapes that do not fit.
  Tensor forward(const Tensor& query, const Rows& q, const Tensor& memory, const Rows& k,
                 const ScoreTerms& terms, const Pass& pass) const;

  // The same in two halves, for a memory that is asked again and again.
  KeyValues project(const Tensor& memory, const Rows& k, const Pass& pass) const;
  Tensor attend(const Tensor& query, const Rows& q, const KeyValues& memory,
                const ScoreTerms& terms, const Pass& pass) const;

  // A step of self-attention: x (N, C) are the new tokens of the sentences in `cache`, which
  // receives their keys and values -> (N, C).
  Tensor step(const Tensor& x, const Rows& rows, KeyValueCache& cache, const ScoreTerms& terms,
              const Pass& pass) const;

  // What forward is made of, for those who change something in between: query (Nq, C), key (Nk,
  // kdim), value (Nk, vdim) -> projections; one product where all three are the same tensor.
  struct Projections {
    Tensor queries;  // (Nq, H, Dk)
    KeyValues memory;
  };
  Projections project(const Tensor& query, const Tensor& key, const Tensor& value, const Rows& k,
                      const Pass& pass) const;
  struct Result {
    Tensor output;   // (Nq, C)
    Tensor weights;  // (B, H, longest Tq, longest Tk), before dropout; undefined unless asked for
  };
  Result attend_projected(const Tensor& queries, const Rows& q, const KeyValues& memory,
                          const ScoreTerms& terms, bool want_weights, const Pass& pass) const;

  void visit(const Visitor& visitor, const std::string& prefix) const override;
  const AttentionOptions& options() const { return options_; }

 private:
  // Which rows of the stacked projection.
  struct Part {
    int64_t begin, count;
  };
  Part queries() const { return {0, qk_}; }
  Part keys() const { return {qk_, qk_}; }
  Part values() const { return {2 * qk_, v_}; }
  bool stacked() const { return weights_.size() == 1; }
  std::vector<Parameter> in_weights(const Init& init) const;
  Tensor product(const Tensor& x, Part part, const Pass& pass) const;
  Tensor heads(const Tensor& x, int64_t begin, int64_t width) const;

  AttentionOptions options_;
  int64_t qk_, v_;  // H Dk, H Dv
  // Rows: queries (H Dk), keys (H Dk), values (H Dv); one matrix, or three where the widths of
  // their inputs differ.
  std::vector<Parameter> weights_;
  Parameter bias_;
  Linear out_;
};

}  // namespace rapt::nn
