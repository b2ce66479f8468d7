#include "rapt/models/torch_module.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "rapt/base/check.h"
#include "rapt/base/file.h"
#include "rapt/base/limits.h"
#include "rapt/base/nearest.h"
#include "rapt/models/checkpoint.h"
#include "rapt/models/json.h"
#include "rapt/models/safetensors.h"
#include "rapt/models/torch_kinds.h"
#include "rapt/tensor/gradients.h"

namespace rapt::models {
namespace {

const TorchEntry* find_entry(std::string_view model_type) {
  for (const TorchEntry& entry : torch_entries()) {
    if (entry.model_type == model_type) return &entry;
  }
  return nullptr;
}

std::string listed(const std::vector<std::string_view>& names) {
  std::string text;
  for (const std::string_view name : names) text.append(text.empty() ? "" : ", ").append(name);
  return text;
}

// What is given to a call: its tensors, of which float ones are watched where gradients are wanted.
class Call : public TorchCall {
 public:
  Call(const TorchEntry& entry, const JsonObject& arguments, const PassOptions& pass)
      : entry_(entry), arguments_(arguments), pass_(pass) {}

  void take(const std::string& name, const Tensor& tensor) { tensors_[name] = tensor; }

  const Tensor& required(std::string_view name) const override {
    const auto found = tensors_.find(name);
    RAPT_CHECK(found != tensors_.end(), "{}: expected an input {}, got none", entry_.model_type,
               name);
    return found->second;
  }
  Tensor optional(std::string_view name) const override {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? Tensor() : found->second;
  }
  bool flag(std::string_view name, bool fallback) const override {
    return arguments_.boolean_or(name, fallback);
  }
  double number(std::string_view name, double fallback, double low, double high) const override {
    return arguments_.number_or(name, fallback, low, high);
  }
  bool has(std::string_view name) const override { return arguments_.has(name); }
  const Pass& pass() const override { return pass_; }

 private:
  const TorchEntry& entry_;
  const JsonObject& arguments_;
  Pass pass_;
  std::map<std::string, Tensor, std::less<>> tensors_;
};

// Tensors whose names begin with d_ are gradients of outputs, not inputs.
bool is_output_gradient(const std::string& name) {
  return name == "d_output" || name == "d_attn_weights";
}

void check_names(const TorchEntry& entry, const NamedTensors& inputs, const RunOptions& options) {
  std::vector<std::string_view> known = entry.required;
  known.insert(known.end(), entry.optional.begin(), entry.optional.end());
  std::map<std::string_view, int> seen;
  for (const auto& [name, tensor] : inputs) {
    RAPT_CHECK(++seen[name] == 1, "{}: input {} is given twice", entry.model_type, name);
    if (is_output_gradient(name)) {
      RAPT_CHECK(options.gradients, "{}: expected no {} where no gradients are asked for",
                 entry.model_type, name);
      continue;
    }
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string close = nearest(name, known);
    fail(ErrorKind::failure, "{}: unknown input {}{}", entry.model_type, name,
         close.empty() ? "; known are " + listed(known) : fmt::format("; did you mean {}?", close));
  }
  for (const std::string_view name : entry.required) {
    RAPT_CHECK(seen.contains(name), "{}: expected an input {}, got none", entry.model_type, name);
  }
  RAPT_CHECK(!options.gradients || seen.contains("d_output"),
             "{}: expected an input d_output, the gradient of output, got none", entry.model_type);
}

const Tensor* find(const NamedTensors& tensors, std::string_view name) {
  for (const auto& [candidate, tensor] : tensors) {
    if (candidate == name) return &tensor;
  }
  return nullptr;
}

void add_layers(NamedTensors& outputs, const char* name, const std::vector<Tensor>& layers) {
  for (size_t l = 0; l < layers.size(); ++l)
    outputs.emplace_back(fmt::format("{}.{}", name, l), layers[l].detach());
}

// A scalar whose backward sends each of `results` its gradient, so that one run of the tape serves
// all of them.
Tensor joined(const Tensor& a, const Tensor& da, const Tensor& b, const Tensor& db) {
  const Tensor both = Tensor::zeros({1}, a.dtype());
  return record(both, {a, b}, [da, db](const Tensor&, Sink& d) {
    if (d.wants(0)) d.give(0, da.contiguous_copy());
    if (d.wants(1)) d.give(1, db.contiguous_copy());
  });
}

void check_gradient(std::string_view model_type, const char* of, const Tensor& result,
                    const Tensor& gradient) {
  RAPT_CHECK(gradient.shape() == result.shape() && gradient.dtype() == result.dtype(),
             "{}: expected d_{} {} of {}, got {} of {}", model_type, of, result.shape().text(),
             dtype_name(result.dtype()), gradient.shape().text(), dtype_name(gradient.dtype()));
}

void run_backward(std::string_view model_type, const TorchResult& result,
                  const NamedTensors& inputs) {
  const Tensor& d_output = *find(inputs, "d_output");
  const Tensor* d_weights = find(inputs, "d_attn_weights");
  check_gradient(model_type, "output", result.output, d_output);
  if (d_weights == nullptr) {
    backward(result.output, d_output);
    return;
  }
  RAPT_CHECK(result.attn_weights.defined(),
             "{}: expected no d_attn_weights where no weights are asked for", model_type);
  check_gradient(model_type, "attn_weights", result.attn_weights, *d_weights);
  backward(joined(result.output, d_output, result.attn_weights, *d_weights));
}

std::string model_types() {
  std::vector<std::string_view> names;
  for (const TorchEntry& entry : torch_entries()) names.push_back(entry.model_type);
  return listed(names);
}

// A config.json, read and found possible.
struct Configured {
  const TorchEntry* entry;
  JsonObject config;
  int64_t parameters;
};

Configured read_torch_config(const std::filesystem::path& folder) {
  const JsonObject config = JsonObject::read(folder / kConfigFile);
  const TorchEntry* entry = find_entry(config.text("model_type"));
  if (entry == nullptr) config.refuse("model_type", "one of " + model_types());
  std::vector<std::string_view> known = entry->constructor;
  known.push_back("model_type");
  config.allow_only(known);
  const int64_t parameters = with_error_kind(ErrorKind::model, (folder / kConfigFile).string(),
                                             [&] { return entry->count_parameters(config); });
  return {entry, config, parameters};
}

std::unique_ptr<TorchKind> load_kind(const Configured& configured,
                                     const std::filesystem::path& folder, DType dtype) {
  const std::filesystem::path path = folder / kWeightsFile;
  const int64_t expected = configured.parameters;
  const auto build = [&] {
    return with_error_kind(ErrorKind::model, (folder / kConfigFile).string(), [&] {
      return configured.entry->build(configured.config, {.rng = nullptr, .dtype = dtype});
    });
  };
  if (expected == 0 && !std::filesystem::exists(path)) return build();
  const SafetensorsFile file(path);
  int64_t elements = 0;
  for (const TensorInfo& tensor : file.tensors()) elements += tensor.numel;
  // Before memory is taken for what a configuration claims.
  if (expected > elements) {
    fail(ErrorKind::model, "{}: expected the {} parameters that {} describes, found {} elements",
         path.string(), expected, kConfigFile, elements);
  }
  std::unique_ptr<TorchKind> kind = build();
  with_error_kind(ErrorKind::model, path.string(), [&] {
    if (kind->module() != nullptr) {
      read_parameters(*kind->module(), file, layout("rapt"));
    } else {
      RAPT_CHECK(file.tensors().empty(), "{} has no place for tensor {}",
                 configured.entry->model_type, file.tensors()[0].name);
    }
  });
  return kind;
}

}  // namespace

bool holds_torch_module(const std::filesystem::path& folder) {
  expect_model(folder);
  const JsonObject config = JsonObject::read(folder / kConfigFile);
  const std::string type = config.text("model_type");
  if (find_entry(type) != nullptr) return true;
  if (type != kModelType)
    config.refuse("model_type", fmt::format("{} or one of {}", kModelType, model_types()));
  return false;
}

TorchDescription describe_torch_module(const std::filesystem::path& folder) {
  const int64_t parameters = read_torch_config(folder).parameters;
  // A few keys in the order of the file: it was read within bounds before.
  const auto config =
      nlohmann::ordered_json::parse(read_file(folder / kConfigFile, Limits().json_bytes));
  return {config.dump(2) + "\n", parameters};
}

TorchModule::TorchModule(const TorchEntry& entry, std::unique_ptr<const TorchKind> kind)
    : entry_(&entry), model_type_(entry.model_type), kind_(std::move(kind)) {}
TorchModule::~TorchModule() = default;
TorchModule::TorchModule(TorchModule&&) noexcept = default;

const nn::Module* TorchModule::module() const { return kind_->module(); }
const std::string& TorchModule::model_type() const { return model_type_; }

TorchModule TorchModule::load(const std::filesystem::path& folder, std::optional<DType> dtype) {
  const Configured configured = read_torch_config(folder);
  return TorchModule(*configured.entry, load_kind(configured, folder, dtype.value_or(DType::f32)));
}

NamedTensors TorchModule::run(const NamedTensors& inputs, const std::string& arguments,
                              const RunOptions& options) const {
  const JsonObject given = JsonObject::parse(arguments, "--args", {}, ErrorKind::usage);
  given.allow_only(entry_->arguments);
  check_names(*entry_, inputs, options);
  Gradients gradients;
  Call call(*entry_, given,
            {.training = options.training,
             .seed = options.seed,
             .step = 0,
             .gradients = options.gradients ? &gradients : nullptr,
             .capture = nullptr});
  NamedTensors watched;
  for (const auto& [name, tensor] : inputs) {
    if (is_output_gradient(name)) continue;
    const bool watch = options.gradients && is_float(tensor.dtype());
    if (watch) watched.emplace_back(name, gradients.watch(tensor));
    call.take(name, watch ? watched.back().second : tensor);
  }
  const TorchResult result = kind_->forward(call);
  NamedTensors outputs;
  outputs.emplace_back("output", result.output.detach());
  if (result.attn_weights.defined())
    outputs.emplace_back("attn_weights", result.attn_weights.detach());
  add_layers(outputs, "encoder_attentions", result.attentions.encoder);
  add_layers(outputs, "decoder_attentions", result.attentions.decoder);
  add_layers(outputs, "cross_attentions", result.attentions.cross);
  if (!options.gradients) return outputs;

  run_backward(model_type_, result, inputs);
  for (const auto& [name, tensor] : watched)
    outputs.emplace_back("d." + name, gradients.of(tensor));
  if (module() == nullptr) return outputs;
  for (const NamedParameter& p : nn::parameters(*module())) {
    const Tensor all = gradients.of(p.parameter);
    outputs.emplace_back(
        "grad." + p.name,
        (all.defined() ? all : Tensor::zeros(p.parameter.shape(), p.parameter.value().dtype()))
            .rows(p.begin, p.count));
  }
  return outputs;
}

}  // namespace rapt::models
