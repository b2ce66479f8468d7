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

// Whether a folder holds one of them, and not a model of our own. Throws Error (model): as
// expect_model, a malformed config.json, a model_type that is neither.
bool holds_torch_module(const std::filesystem::path& folder);

// What config.json says of one, its weights unread. Throws Error (model) as TorchModule::load does
// for config.json.
struct TorchDescription {
  std::string config;      // as it stands; what is not in it has the official default
  int64_t parameters = 0;  // elements of all parameters
};
TorchDescription describe_torch_module(const std::filesystem::path& folder);

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
