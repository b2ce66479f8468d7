#include "rapt/nn/torch/transformer.h"

#include <limits>

#include "rapt/base/check.h"
#include "rapt/nn/torch/initialisation.h"
#include "rapt/nn/torch/names.h"
#include "rapt/nn/torch/stack.h"
#include "rapt/tensor/dispatch.h"

namespace rapt::nn::torch {
namespace {

constexpr const char* kEncoder = "TransformerEncoder";
constexpr const char* kDecoder = "TransformerDecoder";
constexpr const char* kTransformer = "Transformer";

// Runs a stack with a pass that captures weights, if they are wanted.
Tensor captured(const char* who, const AttentionsRequest& request, const Pass& pass,
                AttentionCapture& capture, const std::function<Tensor(const Pass&)>& run) {
  if (request.into == nullptr) return run(pass);
  RAPT_CHECK(pass.capture() == nullptr,
             "{}: expected a pass without a capture of its own where attentions are asked for",
             who);
  return run(pass.with_capture(capture));
}

void check_layers(const char* who, int64_t num_layers) {
  RAPT_CHECK(num_layers >= 0, "{}: expected num_layers of at least 0, got {}", who, num_layers);
}

TransformerLayerOptions layers_of(const TransformerOptions& o) {
  return {.d_model = o.d_model,
          .nhead = o.nhead,
          .dim_feedforward = o.dim_feedforward,
          .dropout = o.dropout,
          .activation = o.activation,
          .layer_norm_eps = o.layer_norm_eps,
          .batch_first = o.batch_first,
          .norm_first = o.norm_first,
          .bias = o.bias};
}

}  // namespace

TransformerEncoder::TransformerEncoder(const TransformerEncoderOptions& options, const Init& init)
    : options_(options),
      dtype_(init.dtype),
      encoder_(layer_options(kEncoder, options.encoder_layer),
               (check_layers(kEncoder, options.num_layers), options.num_layers), options.norm,
               init) {
  if (init.rng != nullptr) draw_in_projections(encoder_, *init.rng);
}

Tensor TransformerEncoder::forward(const Tensor& src, const TransformerEncoderArguments& arguments,
                                   const Pass& pass) const {
  const EncoderCall call(kEncoder, options_.encoder_layer, dtype_, src,
                         {.attn_mask_name = "mask",
                          .attn_mask = arguments.mask,
                          .key_padding_mask_name = "src_key_padding_mask",
                          .key_padding_mask = arguments.src_key_padding_mask,
                          .is_causal = arguments.is_causal});
  const AttentionsRequest& request = arguments.attentions;
  AttentionCapture capture;
  const Tensor output = captured(kEncoder, request, pass, capture, [&](const Pass& inner) {
    return encoder_.forward(call.src.rows, call.rows, call.terms, inner);
  });
  if (request.into != nullptr) {
    request.into->encoder.clear();
    for (const AttentionCapture::Entry& entry : capture.entries)
      request.into->encoder.push_back(
          shaped_weights(entry.weights, call.sizes, request.average_attn_weights));
  }
  return call.result(output);
}

void TransformerEncoder::visit(const Visitor& visitor, const std::string& prefix) const {
  visit_by_official_names(encoder_, LayerKind::encoder, visitor, prefix);
}

TransformerDecoder::TransformerDecoder(const TransformerDecoderOptions& options, const Init& init)
    : options_(options),
      dtype_(init.dtype),
      decoder_(layer_options(kDecoder, options.decoder_layer),
               (check_layers(kDecoder, options.num_layers), options.num_layers), options.norm,
               init) {
  if (init.rng != nullptr) draw_in_projections(decoder_, *init.rng);
}

Tensor TransformerDecoder::forward(const Tensor& tgt, const Tensor& memory,
                                   const TransformerDecoderArguments& arguments,
                                   const Pass& pass) const {
  const DecoderCall call(
      kDecoder, options_.decoder_layer, dtype_, tgt, memory,
      {arguments.tgt_mask, arguments.memory_mask, arguments.tgt_key_padding_mask,
       arguments.memory_key_padding_mask, arguments.tgt_is_causal, arguments.memory_is_causal});
  const AttentionsRequest& request = arguments.attentions;
  AttentionCapture capture;
  const Tensor output = captured(kDecoder, request, pass, capture, [&](const Pass& inner) {
    return decoder_.forward(call.tgt.rows, call.rows, call.terms, call.memory, inner);
  });
  if (request.into != nullptr) {
    request.into->decoder.clear();
    request.into->cross.clear();
    for (const AttentionCapture::Entry& entry : capture.entries) {
      const bool cross = entry.path.ends_with("cross_attention");
      (cross ? request.into->cross : request.into->decoder)
          .push_back(shaped_weights(entry.weights, cross ? call.memory_sizes : call.sizes,
                                    request.average_attn_weights));
    }
  }
  return call.result(output);
}

void TransformerDecoder::visit(const Visitor& visitor, const std::string& prefix) const {
  visit_by_official_names(decoder_, LayerKind::decoder, visitor, prefix);
}

Transformer::Transformer(const TransformerOptions& options, const Init& init)
    : options_(options),
      dtype_(init.dtype),
      encoder_(options.custom_encoder),
      decoder_(options.custom_decoder) {
  const TransformerLayerOptions layers = layers_of(options);
  layer_options(kTransformer, layers);  // throws for what cannot be
  const auto check_stack = [&](const char* name, int64_t count) {
    RAPT_CHECK(count >= 0, "{}: expected {} of at least 0, got {}", kTransformer, name, count);
  };
  check_stack("num_encoder_layers", options.num_encoder_layers);
  check_stack("num_decoder_layers", options.num_decoder_layers);
  const auto drawn = [&](auto stack) {
    if (init.rng != nullptr) draw_all_matrices(*stack, *init.rng);
    return stack;
  };
  if (encoder_ == nullptr) {
    encoder_ = drawn(std::make_shared<TransformerEncoder>(
        TransformerEncoderOptions{layers, options.num_encoder_layers, true}, init));
  }
  if (decoder_ == nullptr) {
    decoder_ = drawn(std::make_shared<TransformerDecoder>(
        TransformerDecoderOptions{layers, options.num_decoder_layers, true}, init));
  }
}

Tensor Transformer::forward(const Tensor& src, const Tensor& tgt, const TransformerArguments& a,
                            const Pass& pass) const {
  const bool batched = is_batched(kTransformer, "src", src);
  RAPT_CHECK(is_batched(kTransformer, "tgt", tgt) == batched,
             "{}: expected src and tgt both with a batch or both without, got {} and {}",
             kTransformer, src.shape().text(), tgt.shape().text());
  if (batched) {
    const int axis = options_.batch_first ? 0 : 1;
    RAPT_CHECK(src.dim(axis) == tgt.dim(axis),
               "{}: expected a tgt with the batch size of src, {}, got {}", kTransformer,
               src.dim(axis), tgt.dim(axis));
  }
  RAPT_CHECK(src.dim(-1) == options_.d_model && tgt.dim(-1) == options_.d_model,
             "{}: expected src and tgt of d_model {} channels, got {} and {}", kTransformer,
             options_.d_model, src.shape().text(), tgt.shape().text());
  check_masks(src, tgt, a);
  Attentions found;  // handed out when nothing can fail any more
  const AttentionsRequest request{.into = a.attentions.into == nullptr ? nullptr : &found,
                                  .average_attn_weights = a.attentions.average_attn_weights};
  const Tensor memory = encoder_->forward(
      src, {a.src_mask, a.src_key_padding_mask, a.src_is_causal, request}, pass.scope("encoder"));
  Tensor output =
      decoder_->forward(tgt, memory,
                        {a.tgt_mask, a.memory_mask, a.tgt_key_padding_mask,
                         a.memory_key_padding_mask, a.tgt_is_causal, a.memory_is_causal, request},
                        pass.scope("decoder"));
  if (a.attentions.into != nullptr) *a.attentions.into = std::move(found);
  return output;
}

void Transformer::check_masks(const Tensor& src, const Tensor& tgt,
                              const TransformerArguments& a) const {
  const bool batched = src.rank() == 3;
  const int batch = options_.batch_first ? 0 : 1, time = batched ? 1 - batch : 0;
  const int64_t N = batched ? src.dim(batch) : 1, S = src.dim(time), T = tgt.dim(time);
  const auto check = [&](const char* mask_name, const Tensor& mask, const char* padding_name,
                         const Tensor& padding, const char* causal_name, bool is_causal, int64_t L,
                         int64_t K) {
    score_terms({kTransformer, mask_name, mask, padding_name, padding, causal_name, is_causal},
                {N, options_.nhead, L, K, batched, dtype_});
  };
  if (options_.custom_encoder == nullptr) {
    check("src_mask", a.src_mask, "src_key_padding_mask", a.src_key_padding_mask, "src_is_causal",
          a.src_is_causal, S, S);
  }
  if (options_.custom_decoder != nullptr) return;
  check("tgt_mask", a.tgt_mask, "tgt_key_padding_mask", a.tgt_key_padding_mask, "tgt_is_causal",
        a.tgt_is_causal, T, T);
  check("memory_mask", a.memory_mask, "memory_key_padding_mask", a.memory_key_padding_mask,
        "memory_is_causal", a.memory_is_causal, T, S);
}

Tensor Transformer::generate_square_subsequent_mask(int64_t size, DType dtype) {
  RAPT_CHECK(size >= 0, "generate_square_subsequent_mask: expected a size of at least 0, got {}",
             size);
  Tensor mask = Tensor::zeros({size, size}, dtype);
  dispatch_float(dtype, "generate_square_subsequent_mask", [&](auto tag) {
    using T = decltype(tag);
    T* value = mask.data<T>();
    for (int64_t i = 0; i < size; ++i)
      std::fill(value + i * size + i + 1, value + (i + 1) * size,
                -std::numeric_limits<T>::infinity());
  });
  return mask;
}

void Transformer::visit(const Visitor& visitor, const std::string& prefix) const {
  encoder_->visit(visitor, join_name(prefix, "encoder"));
  decoder_->visit(visitor, join_name(prefix, "decoder"));
}

}  // namespace rapt::nn::torch
