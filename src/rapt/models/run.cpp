#include "rapt/models/run.h"

#include "rapt/base/checked.h"
#include "rapt/models/checkpoint.h"
#include "rapt/models/json.h"
#include "rapt/models/safetensors.h"
#include "rapt/models/torch_module.h"
#include "rapt/tensor/dispatch.h"

namespace rapt::models {
namespace {

const Tensor& input(const NamedTensors& inputs, const std::string& name) {
  for (const auto& [candidate, tensor] : inputs) {
    if (candidate == name) return tensor;
  }
  fail(ErrorKind::failure, "forward: expected an input {}, got none", name);
}

// A matrix of ids as the model takes it.
struct Ids {
  Tensor flat;  // (B T) i32
  Rows rows;
  Mask mask;  // keys that are not padding
  int64_t B, T;
};

Ids ids_of(const NamedTensors& inputs, const std::string& name, int32_t pad_id) {
  const Tensor& x = input(inputs, name);
  RAPT_CHECK(x.rank() == 2 && (x.dtype() == DType::i64 || x.dtype() == DType::i32),
             "forward: expected {} (B, T) of I64 or I32, got {} of {}", name, x.shape().text(),
             file_type_name(file_type(x.dtype())));
  const int64_t B = x.dim(0), T = x.dim(1);
  Tensor flat = Tensor::empty({B * T}, DType::i32), keep = Tensor::empty({B * T}, DType::boolean);
  const std::vector<int64_t> values = x.to(DType::i64).to_vector<int64_t>();
  for (size_t i = 0; i < values.size(); ++i) {
    flat.data<int32_t>()[i] = narrow<int32_t>(values[i], "forward: id");
    keep.data<uint8_t>()[i] = values[i] != pad_id;
  }
  return {flat, Rows::equal(B, T), Mask::keep(keep), B, T};
}

// The weights of an attention, (B, H, Tq, Tk) each. A batch without sentences does not know their
// lengths: its empty tensors get the shape that the inputs had.
void add_layers(NamedTensors& outputs, const char* name, const std::vector<Tensor>& layers,
                int64_t B, int64_t Tq, int64_t Tk) {
  for (size_t l = 0; l < layers.size(); ++l) {
    const Tensor& weights = layers[l];
    outputs.emplace_back(
        fmt::format("{}.{}", name, l),
        B > 0 ? weights : Tensor::empty({B, weights.dim(1), Tq, Tk}, weights.dtype()));
  }
}

DType type_of(const TensorInfo& info, const std::filesystem::path& path) {
  switch (info.type) {
    case FileType::f64:
      return DType::f64;
    case FileType::f32:
      return DType::f32;
    case FileType::i64:
      return DType::i64;
    case FileType::i32:
      return DType::i32;
    case FileType::boolean:
      return DType::boolean;
    default:
      fail(ErrorKind::data, "{}: {}: expected a tensor of F64, F32, I64, I32 or BOOL, got {}",
           path.string(), info.name, file_type_name(info.type));
  }
}

}  // namespace

NamedTensors read_inputs(const std::filesystem::path& path) {
  try {
    const SafetensorsFile file(path);
    NamedTensors inputs;
    for (const TensorInfo& info : file.tensors())
      inputs.emplace_back(info.name, file.load(info, type_of(info, path)));
    return inputs;
  } catch (const Error& error) {  // a file of this kind is a model's elsewhere
    throw Error(error.what(), error.kind() == ErrorKind::model ? ErrorKind::data : error.kind());
  }
}

std::optional<DType> float_type(const NamedTensors& inputs) {
  std::optional<DType> type;
  for (const auto& [name, tensor] : inputs) {
    if (!is_float(tensor.dtype())) continue;
    if (type && *type != tensor.dtype()) {
      fail(ErrorKind::data, "forward: expected float inputs of one type, got F32 and F64 ({})",
           name);
    }
    type = tensor.dtype();
  }
  return type;
}

NamedTensors run(const EncoderDecoder& model, const NamedTensors& inputs,
                 const RunOptions& options) {
  for (const auto& [name, tensor] : inputs) {
    RAPT_CHECK(name == "src" || name == "tgt" || (name == "d_output" && options.gradients),
               "forward: expected inputs src and tgt{}, got {}",
               options.gradients ? " and d_output" : " (d_output with gradients)", name);
  }
  const Ids source = ids_of(inputs, "src", model.config().pad_id),
            target = ids_of(inputs, "tgt", model.config().pad_id);
  RAPT_CHECK(source.B == target.B, "forward: expected as many rows of tgt as of src, got {} and {}",
             target.B, source.B);
  if (options.gradients) input(inputs, "d_output");  // before the work
  Gradients gradients;
  Attentions attentions;
  const PassOptions pass{.training = options.training,
                         .seed = options.seed,
                         .step = 0,
                         .gradients = options.gradients ? &gradients : nullptr,
                         .capture = nullptr};
  const Tensor flat = options.attentions
                          ? model.forward(source.flat, source.rows, target.flat, target.rows,
                                          attentions, pass, source.mask, target.mask)
                          : model.forward(source.flat, source.rows, target.flat, target.rows,
                                          Pass(pass), source.mask, target.mask);
  const Shape whole{target.B, target.T, model.config().tgt_vocab_size};
  NamedTensors outputs;
  outputs.emplace_back("logits", flat.detach().reshape(whole));
  add_layers(outputs, "encoder_attentions", attentions.encoder, source.B, source.T, source.T);
  add_layers(outputs, "decoder_attentions", attentions.decoder, target.B, target.T, target.T);
  add_layers(outputs, "cross_attentions", attentions.cross, target.B, target.T, source.T);
  if (options.gradients) {
    const Tensor& d_output = input(inputs, "d_output");
    RAPT_CHECK(d_output.shape() == whole && d_output.dtype() == flat.dtype(),
               "forward: expected d_output {} of {}, got {} of {}", whole.text(),
               dtype_name(flat.dtype()), d_output.shape().text(), dtype_name(d_output.dtype()));
    backward(flat, d_output.reshape(flat.shape()));
    const auto gradient = [&](const NamedParameter& p) {
      const Tensor all = gradients.of(p.parameter);
      return (all.defined() ? all : Tensor::zeros(p.parameter.shape(), p.parameter.value().dtype()))
          .rows(p.begin, p.count);
    };
    for (auto& [name, tensor] : by_file_name(model, layout(model.config().layout), gradient))
      outputs.emplace_back("grad." + name, tensor);
  }
  return outputs;
}

NamedTensors run_folder(const std::filesystem::path& folder, const std::filesystem::path& inputs,
                        const std::string& arguments, RunOptions options) {
  const JsonObject given = JsonObject::parse(arguments, "--args", {}, ErrorKind::usage);
  const NamedTensors tensors = read_inputs(inputs);
  if (holds_torch_module(folder)) {
    const TorchModule module = TorchModule::load(folder, float_type(tensors));
    return with_error_kind(ErrorKind::data, inputs.string(),
                           [&] { return module.run(tensors, arguments, options); });
  }
  given.allow_only({"attentions"});
  options.attentions = given.boolean_or("attentions", options.attentions);
  const auto model = load_encoder_decoder(folder, float_type(tensors));
  return with_error_kind(ErrorKind::data, inputs.string(),
                         [&] { return run(*model, tensors, options); });
}

}  // namespace rapt::models
