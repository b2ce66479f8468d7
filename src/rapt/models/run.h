// One run of a model on given tensors: outputs, attention weights and gradients under the names
// that its file uses. What `rapt forward` does.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rapt/models/encoder_decoder.h"

namespace rapt::models {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// The tensors of a safetensors file, of F64, F32, I64 or I32, as they stand. Throws Error (data)
// for a file that is missing or bad and for other types.
NamedTensors read_inputs(const std::filesystem::path& path);

// The type of the float tensors, which decides what a model computes in; nothing if there are none.
// Throws Error (data) where they differ.
std::optional<DType> float_type(const NamedTensors& inputs);

struct RunOptions {
  bool attentions = false;  // also the weights of all attentions
  bool gradients = false;   // also the gradient of every parameter; needs d_output
  bool training = false;    // dropout acts
  uint64_t seed = 0;
};

// inputs: src (B, Ts) and tgt (B, Tt) of I64 or I32, with gradients also d_output (B, Tt, V) of the
// model's type. The id matrices are taken as they stand: equal lengths, keys hidden where id ==
// pad_id. Gives logits (B, Tt, V); with attentions encoder_attentions.{l} (B, H, Ts, Ts),
// decoder_attentions.{l} (B, H, Tt, Tt) and cross_attentions.{l} (B, H, Tt, Ts); with gradients
// grad.NAME for every parameter by its name in the file. Throws Error for inputs that are missing,
// unknown or do not fit.
NamedTensors run(const EncoderDecoder& model, const NamedTensors& inputs,
                 const RunOptions& options);

}  // namespace rapt::models
