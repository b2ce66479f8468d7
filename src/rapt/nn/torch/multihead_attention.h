// torch.nn.MultiheadAttention over rapt::nn::Attention.
//
// Sizes: N batch, L queries, S keys, E embed_dim, H num_heads.
#pragma once

#include <optional>

#include "rapt/nn/attention.h"

namespace rapt::nn::torch {

// The constructor's arguments, by their official names and with their defaults.
struct MultiheadAttentionOptions {
  int64_t embed_dim = 0;
  int64_t num_heads = 0;
  double dropout = 0;  // of the weights
  bool bias = true;
  bool add_bias_kv = false;                     // one learned key and value more for every sentence
  bool add_zero_attn = false;                   // one key and value of zeros more
  std::optional<int64_t> kdim = {}, vdim = {};  // widths of key and value; none: embed_dim
  bool batch_first = false;
};

// The optional arguments of forward.
struct MultiheadAttentionArguments {
  // (N, S), or (S) without a batch. Bool: true hides the key. Float: added to its scores.
  Tensor key_padding_mask = {};
  bool need_weights = true;
  // (L, S) or (N * H, L, S), (H, L, S) without a batch. Bool: true hides the key from the query.
  // Float: added to the score, differentiated if it is recorded.
  Tensor attn_mask = {};
  bool average_attn_weights = true;
  // No query sees a later position: key j <= query i + S - L. Works alone; together with attn_mask
  // both must say the same.
  bool is_causal = false;
};

class MultiheadAttention : public Module {
 public:
  // Initialised as the official module: Xavier uniform in-projections (the stacked one as one
  // matrix), Xavier normal bias_k and bias_v, biases of the projections 0. Throws Error that names
  // the argument for sizes below 1, num_heads that do not divide embed_dim, and dropout outside
  // [0, 1).
  MultiheadAttention(const MultiheadAttentionOptions& options, const Init& init);

  struct Result {
    Tensor output;        // as query
    Tensor attn_weights;  // averaged: (N, L, S) or (L, S); else (N, H, L, S) or (H, L, S);
                          // undefined unless need_weights. S counts the keys that options add.
  };
  // query (L, N, E), key (S, N, kdim), value (S, N, vdim); with batch_first (N, L, E) and so on;
  // without a batch (L, E), (S, kdim), (S, vdim). A query that may see no key yields the output
  // bias alone and weights of zero. The weights are those before dropout. Throws Error that says
  // argument, expected and got for anything that does not fit.
  Result forward(const Tensor& query, const Tensor& key, const Tensor& value,
                 const MultiheadAttentionArguments& arguments, const Pass& pass) const;

  // in_proj_weight (or q_proj_weight, k_proj_weight, v_proj_weight), in_proj_bias, bias_k, bias_v,
  // out_proj.weight, out_proj.bias.
  void visit(const Visitor& visitor, const std::string& prefix) const override;
  const MultiheadAttentionOptions& options() const { return options_; }

 private:
  KeyValues with_added_keys(const KeyValues& memory, const Pass& pass) const;

  MultiheadAttentionOptions options_;
  DType dtype_;
  Attention attention_;
  Parameter bias_k_, bias_v_;  // (1, 1, E)
};

}  // namespace rapt::nn::torch
