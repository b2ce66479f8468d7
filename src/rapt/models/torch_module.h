// The six modules of the official library, and attention alone, as a folder holds them: config.json
// with "model_type": "torch.nn.X" and the constructor's arguments by their names, model.safetensors
// with the names of the official state_dict.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "rapt/models/named_tensors.h"
#include "rapt/nn/module.h"

namespace rapt::models {

class JsonObject;
class TorchKind;
struct TorchEntry;

// Whether `model_type` of a config.json is one of them; torch_model_types() lists them.
bool is_torch_model_type(const std::string& model_type);
std::string torch_model_types();

class TorchModule {
 public:
  // Attention alone needs no model.safetensors. `dtype`: that of the parameters, f32 where it is
  // not given. Throws Error (model): a missing or malformed file, an unknown key (naming the
  // nearest), a value that is out of range or contradicts another, a tensor that is missing, of
  // another shape or without a place.
  static TorchModule load(const std::filesystem::path& folder, std::optional<DType> dtype = {});
  ~TorchModule();
  TorchModule(TorchModule&&) noexcept;

  // The module itself; null for attention alone.
  const nn::Module* module() const;
  const std::string& model_type() const;

  // One call of forward. `inputs` are its tensors by their official names, with gradients also
  // d_output, and d_attn_weights where the weights' gradient counts too. `arguments` are the others
  // as a JSON object: {"need_weights": false}; stacks and Transformer also take attentions and
  // average_attn_weights. Gives output; attn_weights where MultiheadAttention returns them; with
  // attentions encoder_attentions.{l}, decoder_attentions.{l} and cross_attentions.{l}; with
  // gradients d.NAME of every float input and grad.NAME of every parameter. Throws Error (usage)
  // for arguments that do not fit, Error for tensors that are missing, unknown or do not fit.
  NamedTensors run(const NamedTensors& inputs, const std::string& arguments,
                   const RunOptions& options) const;

 private:
  TorchModule(const TorchEntry& entry, std::unique_ptr<const TorchKind> kind);

  const TorchEntry* entry_;
  std::string model_type_;
  std::unique_ptr<const TorchKind> kind_;
};

}  // namespace rapt::models
