// One run of a model on given tensors: outputs, attention weights and gradients under the names
// that its file uses. What `rapt forward` does.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "rapt/models/encoder_decoder.h"
#include "rapt/models/named_tensors.h"

namespace rapt::models {

// The tensors of a safetensors file, of F64, F32, I64, I32 or BOOL, as they stand. Throws Error
// (data) for a file that is missing or bad and for other types.
NamedTensors read_inputs(const std::filesystem::path& path);

// The type of the float tensors, which decides what a model computes in; nothing if there are none.
// Throws Error (data) where they differ.
std::optional<DType> float_type(const NamedTensors& inputs);

// inputs: src (B, Ts) and tgt (B, Tt) of I64 or I32, with gradients also d_output (B, Tt, V) of the
// model's type. The id matrices are taken as they stand: equal lengths, keys hidden where id ==
// pad_id. Gives logits (B, Tt, V); with attentions encoder_attentions.{l} (B, H, Ts, Ts),
// decoder_attentions.{l} (B, H, Tt, Tt) and cross_attentions.{l} (B, H, Tt, Ts); with gradients
// grad.NAME for every parameter by its name in the file. Throws Error for inputs that are missing,
// unknown or do not fit.
NamedTensors run(const EncoderDecoder& model, const NamedTensors& inputs,
                 const RunOptions& options);

// One run of what a folder holds, on the tensors of a file: a model as above, or an official module
// (torch_module.h). `arguments` is a JSON object of what is no tensor: of a model
// {"attentions": true}, of a module forward's arguments. Throws Error (usage) for the arguments,
// Error (model) for the folder, Error (data) for the inputs.
NamedTensors run_folder(const std::filesystem::path& folder, const std::filesystem::path& inputs,
                        const std::string& arguments, RunOptions options);

}  // namespace rapt::models
