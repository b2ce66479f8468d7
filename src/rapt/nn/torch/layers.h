// torch.nn.TransformerEncoderLayer and TransformerDecoderLayer over the layers of rapt::nn.
//
// Sizes: N batch, S source and T target length, E d_model, H nhead. Tensors are (S, N, E), with
// batch_first (N, S, E), without a batch (S, E).
//
// Masks: src_mask (S, S) or (N * H, S, S), padding masks (N, S), or (S) without a batch. A bool
// mask is true where a key is hidden; a float mask is added to the scores, differentiated if it is
// recorded. An is_causal argument works alone; together with a mask both must say the same. Throws
// Error that says argument, expected and got for anything that does not fit.
#pragma once

#include "rapt/nn/decoder.h"
#include "rapt/nn/encoder.h"

namespace rapt::nn::torch {

// The constructor's arguments of both layers, by their official names and with their defaults.
struct TransformerLayerOptions {
  int64_t d_model = 0;
  int64_t nhead = 0;
  int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  Activation activation = "relu";  // relu, gelu, or a function
  double layer_norm_eps = 1e-5;
  bool batch_first = false;
  bool norm_first = false;
  bool bias = true;
};

struct TransformerEncoderLayerArguments {
  Tensor src_mask = {};
  Tensor src_key_padding_mask = {};
  bool is_causal = false;
};

class TransformerEncoderLayer : public Module {
 public:
  // Throws Error that names the argument for sizes below 1, an nhead that does not divide d_model,
  // and dropout outside [0, 1).
  TransformerEncoderLayer(const TransformerLayerOptions& options, const Init& init);

  // src -> as src.
  Tensor forward(const Tensor& src, const TransformerEncoderLayerArguments& arguments,
                 const Pass& pass) const;

  // self_attn.in_proj_weight, linear1.weight, norm1.weight and so on.
  void visit(const Visitor& visitor, const std::string& prefix) const override;

 private:
  TransformerLayerOptions options_;
  DType dtype_;
  EncoderLayer layer_;
};

struct TransformerDecoderLayerArguments {
  Tensor tgt_mask = {};                 // (T, T) or (N * H, T, T)
  Tensor memory_mask = {};              // (T, S) or (N * H, T, S)
  Tensor tgt_key_padding_mask = {};     // (N, T)
  Tensor memory_key_padding_mask = {};  // (N, S)
  bool tgt_is_causal = false;
  bool memory_is_causal = false;  // by position: key j <= query i + S - T
};

class TransformerDecoderLayer : public Module {
 public:
  TransformerDecoderLayer(const TransformerLayerOptions& options, const Init& init);

  // tgt (T, N, E) and memory (S, N, E) -> as tgt.
  Tensor forward(const Tensor& tgt, const Tensor& memory,
                 const TransformerDecoderLayerArguments& arguments, const Pass& pass) const;

  // self_attn, multihead_attn, linear1, linear2, norm1, norm2, norm3.
  void visit(const Visitor& visitor, const std::string& prefix) const override;

 private:
  TransformerLayerOptions options_;
  DType dtype_;
  DecoderLayer layer_;
};

}  // namespace rapt::nn::torch
