// What layers and stacks of torch.nn share: their arguments, checked and turned into rows and
// terms.
#pragma once

#include "rapt/nn/torch/batch.h"
#include "rapt/nn/torch/layers.h"

namespace rapt::nn::torch {

// The options as our layers take them. Throws Error, as `who`, that names the argument.
LayerOptions layer_options(const char* who, const TransformerLayerOptions& options);

// A call of an encoder. `masks` need no `who`.
struct EncoderCall {
  EncoderCall(const char* who, const TransformerLayerOptions& options, DType dtype,
              const Tensor& source, MaskArguments masks);

  Tensor result(const Tensor& output) const { return as_sequence(output, src, layout); }

  BatchLayout layout;
  Sequence src;
  Rows rows;
  AttentionSizes sizes;
  ScoreTerms terms;
};

// A call of a decoder.
struct DecoderCall {
  DecoderCall(const char* who, const TransformerLayerOptions& options, DType dtype,
              const Tensor& target, const Tensor& encoded,
              const TransformerDecoderLayerArguments& arguments);

  Tensor result(const Tensor& output) const { return as_sequence(output, tgt, layout); }

  BatchLayout layout;
  Sequence tgt;
  Rows rows;
  AttentionSizes sizes;  // of the self-attention
  ScoreTerms terms;
  AttentionSizes memory_sizes;  // of the cross-attention
  Memory memory;
};

}  // namespace rapt::nn::torch
