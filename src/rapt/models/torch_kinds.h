// The official modules one by one: what their constructors and their forward take, by name. For
// torch_module.cpp.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "rapt/nn/torch/transformer.h"
#include "rapt/tensor/pass.h"

namespace rapt::models {

class JsonObject;

// The arguments of one call of forward. Names are checked before.
class TorchCall {
 public:
  virtual ~TorchCall() = default;
  virtual const Tensor& required(std::string_view name) const = 0;  // throws Error (data)
  virtual Tensor optional(std::string_view name) const = 0;         // undefined where there is none
  virtual bool flag(std::string_view name, bool fallback) const = 0;
  virtual double number(std::string_view name, double fallback, double low, double high) const = 0;
  virtual bool has(std::string_view name) const = 0;  // among the arguments that are no tensors
  virtual const Pass& pass() const = 0;
};

struct TorchResult {
  Tensor output;
  Tensor attn_weights = {};        // undefined where they are not asked for
  nn::Attentions attentions = {};  // of stacks, where asked for
};

// One module, built.
class TorchKind {
 public:
  virtual ~TorchKind() = default;
  virtual const nn::Module* module() const = 0;  // null: it has no parameters
  virtual TorchResult forward(const TorchCall& call) const = 0;
};

// What there is to know of a module before it is built.
struct TorchEntry {
  std::string_view model_type;                       // "torch.nn.Transformer"
  std::vector<std::string_view> constructor;         // keys of config.json beside model_type
  std::vector<std::string_view> required, optional;  // forward's tensors
  std::vector<std::string_view> arguments;           // forward's others
  // Parameters that the configuration describes. Throws Error (model) for values that cannot be.
  int64_t (*count_parameters)(const JsonObject& config);
  std::unique_ptr<TorchKind> (*build)(const JsonObject& config, const nn::Init& init);
};

// All seven, in the order of messages.
const std::vector<TorchEntry>& torch_entries();

}  // namespace rapt::models
