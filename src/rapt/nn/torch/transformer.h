// torch.nn.TransformerEncoder, TransformerDecoder and Transformer. Shapes, masks and errors are
// those of their layers: rapt/nn/torch/layers.h.
#pragma once

#include <memory>

#include "rapt/nn/attentions.h"
#include "rapt/nn/torch/layers.h"

namespace rapt::nn::torch {

// The attention weights of a call, which no official module gives.
struct AttentionsRequest {
  Attentions* into = nullptr;         // cleared and filled; null: none are wanted
  bool average_attn_weights = false;  // (N, L, S) instead of (N, H, L, S)
};

struct TransformerEncoderArguments {
  Tensor mask = {};
  Tensor src_key_padding_mask = {};
  bool is_causal = false;
  AttentionsRequest attentions = {};
};

// What Transformer takes as custom_encoder.
class TransformerEncoderInterface : public Module {
 public:
  // src -> memory, both as the official module takes them.
  virtual Tensor forward(const Tensor& src, const TransformerEncoderArguments& arguments,
                         const Pass& pass) const = 0;
};

struct TransformerEncoderOptions {
  TransformerLayerOptions encoder_layer = {};
  int64_t num_layers = 0;
  bool norm = false;  // a LayerNorm after the last layer, with the layers' epsilon and bias
};

// Every layer draws weights of its own, where the official module copies one layer.
class TransformerEncoder : public TransformerEncoderInterface {
 public:
  TransformerEncoder(const TransformerEncoderOptions& options, const Init& init);
  Tensor forward(const Tensor& src, const TransformerEncoderArguments& arguments,
                 const Pass& pass) const override;
  // layers.{i}. and the names of a layer, norm.weight, norm.bias.
  void visit(const Visitor& visitor, const std::string& prefix) const override;

 private:
  TransformerEncoderOptions options_;
  DType dtype_;
  Encoder encoder_;
};

struct TransformerDecoderArguments {
  Tensor tgt_mask = {};
  Tensor memory_mask = {};
  Tensor tgt_key_padding_mask = {};
  Tensor memory_key_padding_mask = {};
  bool tgt_is_causal = false;
  bool memory_is_causal = false;
  AttentionsRequest attentions = {};
};

// What Transformer takes as custom_decoder.
class TransformerDecoderInterface : public Module {
 public:
  virtual Tensor forward(const Tensor& tgt, const Tensor& memory,
                         const TransformerDecoderArguments& arguments, const Pass& pass) const = 0;
};

struct TransformerDecoderOptions {
  TransformerLayerOptions decoder_layer = {};
  int64_t num_layers = 0;
  bool norm = false;
};

class TransformerDecoder : public TransformerDecoderInterface {
 public:
  TransformerDecoder(const TransformerDecoderOptions& options, const Init& init);
  Tensor forward(const Tensor& tgt, const Tensor& memory,
                 const TransformerDecoderArguments& arguments, const Pass& pass) const override;
  void visit(const Visitor& visitor, const std::string& prefix) const override;

 private:
  TransformerDecoderOptions options_;
  DType dtype_;
  Decoder decoder_;
};

struct TransformerOptions {
  int64_t d_model = 512;
  int64_t nhead = 8;
  int64_t num_encoder_layers = 6;
  int64_t num_decoder_layers = 6;
  int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  Activation activation = "relu";
  std::shared_ptr<const TransformerEncoderInterface> custom_encoder = nullptr;
  std::shared_ptr<const TransformerDecoderInterface> custom_decoder = nullptr;
  double layer_norm_eps = 1e-5;
  bool batch_first = false;
  bool norm_first = false;
  bool bias = true;
};

struct TransformerArguments {
  Tensor src_mask = {}, tgt_mask = {}, memory_mask = {};
  Tensor src_key_padding_mask = {}, tgt_key_padding_mask = {}, memory_key_padding_mask = {};
  bool src_is_causal = false, tgt_is_causal = false, memory_is_causal = false;
  AttentionsRequest attentions = {};
};

class Transformer : public Module {
 public:
  // Both stacks end in a norm. All matrices are drawn by Xavier uniform (Glorot and Bengio 2010),
  // the biases of the attentions start at 0; custom stacks stay as they are given.
  Transformer(const TransformerOptions& options, const Init& init);

  // src (S, N, E), tgt (T, N, E) -> as tgt; see layers.h.
  Tensor forward(const Tensor& src, const Tensor& tgt, const TransformerArguments& arguments,
                 const Pass& pass) const;

  // (size, size): 0 where a query may see a key, minus infinity where the key is later. Throws
  // Error for a negative size.
  static Tensor generate_square_subsequent_mask(int64_t size, DType dtype = DType::f32);

  // encoder. and decoder. with the names of the stacks.
  void visit(const Visitor& visitor, const std::string& prefix) const override;

 private:
  // Throws by this module's names of the masks, before anything is computed. What stacks of one's
  // own take is theirs to check.
  void check_masks(const Tensor& src, const Tensor& tgt, const TransformerArguments& a) const;

  TransformerOptions options_;
  DType dtype_;
  std::shared_ptr<const TransformerEncoderInterface> encoder_;
  std::shared_ptr<const TransformerDecoderInterface> decoder_;
};

}  // namespace rapt::nn::torch
