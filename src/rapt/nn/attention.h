// Multi-head scaled dot-product attention, Vaswani et al. 2017, section 3.2.
//
// Sizes: Nq, Nk tokens of the queries and the memory, C model width, H heads, Dk width of a head's
// queries and keys, Dv of its values.
#pragma once

#include "rapt/nn/cache.h"
#include "rapt/nn/linear.h"
#include "rapt/tensor/mask.h"

namespace rapt::nn {

struct AttentionOptions {
  int64_t d_model = 512;
  int64_t nhead = 8;
  int64_t d_qk = 0;    // a head; 0: d_model / nhead, which must then be a whole number
  int64_t d_v = 0;     // a head; 0: d_model / nhead
  double dropout = 0;  // of the weights
  bool bias = true;
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
  // `mask` lets see no key yields the output bias alone. Gives the weights to the pass if they are
  // wanted. Throws Error on shapes that do not fit.
  Tensor forward(const Tensor& query, const Rows& q, const Tensor& memory, const Rows& k,
                 const Mask& mask, const Pass& pass) const;

  // The same in two halves, for a memory that is asked again and again.
  KeyValues project(const Tensor& memory, const Rows& k, const Pass& pass) const;
  Tensor attend(const Tensor& query, const Rows& q, const KeyValues& memory, const Mask& mask,
                const Pass& pass) const;

  // A step of self-attention: x (N, C) are the new tokens of the sentences in `cache`, which
  // receives their keys and values -> (N, C).
  Tensor step(const Tensor& x, const Rows& rows, KeyValueCache& cache, const Mask& mask,
              const Pass& pass) const;

  void visit(const Visitor& visitor, const std::string& prefix) const override;
  const AttentionOptions& options() const { return options_; }

 private:
  struct Heads {
    Tensor queries, keys, values;  // (Nq, H, Dk), (Nk, H, Dk), (Nk, H, Dv): views
  };
  Heads split(const Tensor& joined) const;
  Tensor context(const Tensor& queries, const Rows& q, const KeyValues& memory, const Mask& mask,
                 const Pass& pass) const;

  AttentionOptions options_;
  int64_t qk_, v_;  // H Dk, H Dv
  Linear in_;       // rows: queries (H Dk), keys (H Dk), values (H Dv)
  Linear out_;
};

}  // namespace rapt::nn
