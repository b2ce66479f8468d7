#include "rapt/models/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "rapt/base/check.h"
#include "rapt/base/file.h"
#include "rapt/models/int8_weights.h"
#include "rapt/models/json.h"
#include "rapt/models/safetensors.h"
#include "rapt/tensor/dispatch.h"

namespace rapt::models {
namespace {

using Named = std::map<std::string, NamedParameter>;

void copy_elements(Tensor to, const Tensor& from) {
  std::memcpy(to.raw(), from.raw(), static_cast<size_t>(from.numel() * size_of(from.dtype())));
}

Named by_name(const nn::Module& model, std::vector<std::string>& order) {
  Named named;
  for (NamedParameter& p : nn::parameters(model)) {
    order.push_back(p.name);
    named.emplace(order.back(), std::move(p));
  }
  return named;
}

// The parameters that a tensor of the file is made of; rows of one parameter that follow each other
// are one part.
std::vector<NamedParameter> parts_of(const LayoutEntry& entry, const Named& named) {
  std::vector<NamedParameter> parts;
  for (const std::string& name : entry.canonical) {
    const NamedParameter& next = named.at(name);
    if (!parts.empty() && parts.back().parameter.same_as(next.parameter) &&
        parts.back().begin + parts.back().count == next.begin) {
      parts.back().count += next.count;
    } else {
      parts.push_back(next);
    }
  }
  return parts;
}

// `parts` along the first axis: the only one itself, else a copy.
Tensor stacked(const std::vector<Tensor>& parts) {
  if (parts.size() == 1) return parts[0];
  std::vector<int64_t> sizes(parts[0].shape().sizes().begin(), parts[0].shape().sizes().end());
  for (size_t i = 1; i < parts.size(); ++i) sizes[0] += parts[i].dim(0);
  Tensor whole = Tensor::empty(Shape(sizes), parts[0].dtype());
  int64_t row = 0;
  for (const Tensor& part : parts) {
    copy_elements(whole.rows(row, part.dim(0)), part);
    row += part.dim(0);
  }
  return whole;
}

std::vector<Tensor> values_of(const LayoutEntry& entry, const Named& named, const PartOf& part) {
  std::vector<Tensor> values;
  for (const NamedParameter& p : parts_of(entry, named)) values.push_back(part(p));
  return values;
}

bool equal(const Tensor& a, const Tensor& b) {
  return a.numel() == b.numel() &&
         std::memcmp(a.raw(), b.raw(), static_cast<size_t>(a.numel() * size_of(a.dtype()))) == 0;
}

void check_tied(const std::string& name, bool same) {
  RAPT_CHECK(same,
             "{}: expected the same values as the tensor that it is tied to; set tie_embeddings "
             "to none if they are meant to differ",
             name);
}

// Reads a tensor of the file into the parameters that it is made of.
void read_entry(const SafetensorsFile& file, const TensorInfo& info,
                const std::vector<Tensor>& parts, bool compare) {
  int64_t rows = 0;
  for (const Tensor& part : parts) rows += part.dim(0);
  std::vector<int64_t> wanted(parts[0].shape().sizes().begin(), parts[0].shape().sizes().end());
  wanted[0] = rows;
  // A convolution whose kernel is its stride is a matrix over patches: its weight may have the axes
  // of a patch.
  const bool patches = wanted.size() == 2 && info.shape.size() > 2 && info.shape[0] == rows &&
                       info.numel == rows * wanted[1];
  RAPT_CHECK(info.shape == wanted || patches, "{}: expected shape {}, got {}", info.name,
             Shape(wanted).text(), Shape(info.shape).text());
  if (compare) {
    check_tied(info.name, equal(file.load(info, parts[0].dtype()), stacked(parts)));
    return;
  }
  Tensor target = parts.size() == 1 ? parts[0] : Tensor::empty(Shape(wanted), parts[0].dtype());
  dispatch_float(target.dtype(), "load", [&](auto tag) {
    using T = decltype(tag);
    file.read(info, std::span<T>(target.data<T>(), static_cast<size_t>(target.numel())));
  });
  int64_t row = 0;
  for (size_t i = 0; i < parts.size() && parts.size() > 1; ++i) {
    copy_elements(parts[i], target.rows(row, parts[i].dim(0)));
    row += parts[i].dim(0);
  }
}

void read_weights(EncoderDecoder& model, const SafetensorsFile& file, const Layout& layout) {
  read_parameters(model, file, layout);
  bool first_table = true;
  for (const std::string_view name : layout.positions) {
    const TensorInfo* info = file.find(name);
    if (info == nullptr) continue;
    // Tables may have axes of size 1 around them, as a buffer meant for (T, 1, C) has.
    Tensor table = file.load(*info, model.positions().dtype());
    RAPT_CHECK(table.numel() == model.positions().numel(),
               "{}: expected {} positions of width {} (max_len, d_model), got shape {}", name,
               model.config().max_len, model.config().d_model, table.shape().text());
    table = table.reshape(model.positions().shape());
    RAPT_CHECK(first_table || equal(table, model.positions()), "{}: expected the same table as {}",
               name, layout.positions[0]);
    model.set_positions(table);
    first_table = false;
  }
}

}  // namespace

void read_parameters(const nn::Module& model, const SafetensorsFile& file, const Layout& layout) {
  std::vector<std::string> order;
  const Named named = by_name(model, order);
  std::set<std::string_view> known(layout.positions.begin(), layout.positions.end());
  // What has been read: the tensors of each parameter, by its first row.
  std::map<std::pair<uint64_t, int64_t>, const TensorInfo*> done;
  std::vector<std::pair<std::string, std::vector<std::string>>> missing;
  const std::vector<LayoutEntry> all = entries(layout, order);
  Int8Reader int8;
  for (const LayoutEntry& entry : all) {
    known.insert(entry.file);
    const NamedParameter& first = named.at(entry.canonical.front());
    const TensorInfo* info = file.find(entry.file);
    if (info == nullptr) {
      missing.emplace_back(entry.file, entry.canonical);
      continue;
    }
    const auto [before, fresh] = done.emplace(std::pair(first.parameter.id(), first.begin), info);
    if (!first.parameter.has_value()) {
      if (info->type == FileType::i8) known.insert(file.at(scale_name(info->name)).name);
      if (fresh) {
        int8.read(file, *info, parts_of(entry, named));
      } else {
        check_tied(info->name, same_contents(file, *info, *before->second));
      }
      continue;
    }
    read_entry(file, *info,
               values_of(entry, named, [](const NamedParameter& p) { return p.value(); }), !fresh);
  }
  for (const auto& [name, canonical] :
       missing) {  // fine if the file has it under the name of a tied one
    const NamedParameter& first = named.at(canonical.front());
    RAPT_CHECK(done.contains({first.parameter.id(), first.begin}),
               "expected a tensor {}, found none", name);
  }
  for (const TensorInfo& info : file.tensors()) {
    RAPT_CHECK(known.contains(info.name),
               "the model has no place for tensor {}; check layout and options in {}", info.name,
               kConfigFile);
  }
}

std::string config_text(const EncoderDecoderConfig& c) {
  nlohmann::ordered_json j;
  j["model_type"] = kModelType;
  j["layout"] = c.layout;
  j["src_vocab_size"] = c.src_vocab_size;
  j["tgt_vocab_size"] = c.tgt_vocab_size;
  j["d_model"] = c.d_model;
  j["nhead"] = c.nhead;
  const nn::AttentionOptions widths = nn::checked(
      nn::AttentionOptions{.d_model = c.d_model, .nhead = c.nhead, .d_qk = c.d_qk, .d_v = c.d_v});
  j["d_qk"] = widths.d_qk;
  j["d_v"] = widths.d_v;
  j["dim_feedforward"] = c.dim_feedforward;
  j["num_encoder_layers"] = c.num_encoder_layers;
  j["num_decoder_layers"] = c.num_decoder_layers;
  j["activation"] = c.activation;
  j["norm_first"] = c.norm_first;
  j["final_norm"] = c.final_norm;
  j["layer_norm_eps"] = c.layer_norm_eps;
  j["position_dropout"] = c.position_dropout;
  j["dropout"] = c.dropout;
  if (c.attention_dropout) j["attention_dropout"] = *c.attention_dropout;
  if (c.activation_dropout) j["activation_dropout"] = *c.activation_dropout;
  j["max_len"] = c.max_len;
  j["scale_embeddings"] = c.scale_embeddings;
  j["projection_bias"] = c.projection_bias;
  j["tie_embeddings"] = name_of(c.tie_embeddings);
  j["pad_id"] = c.pad_id;
  j["start_id"] = c.start_id;
  j["end_id"] = c.end_id;
  if (c.unk_id) j["unk_id"] = *c.unk_id;
  return j.dump(2) + "\n";
}

void expect_model(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const auto missing = [&](const fs::path& path) {
    return fs::status(path, ignored).type() == fs::file_type::not_found;
  };
  if (!missing(folder / kConfigFile)) return;
  const fs::path inside = folder / "model";
  fail(ErrorKind::model, "{}: expected a model folder with {} and {}; {}{}", folder.string(),
       kConfigFile, kWeightsFile,
       missing(folder)                        ? "it does not exist"
       : fs::is_regular_file(folder, ignored) ? "it is a file"
                                              : fmt::format("there is no {} in it", kConfigFile),
       missing(inside / kConfigFile) ? "" : fmt::format("; did you mean {}?", inside.string()));
}

EncoderDecoderConfig read_config(const std::filesystem::path& folder) {
  expect_model(folder);
  const std::filesystem::path path = folder / kConfigFile;
  const JsonObject j = JsonObject::read(path);
  const Limits limits;
  j.choice("model_type", {kModelType});
  j.allow_only({"model_type",
                "layout",
                "src_vocab_size",
                "tgt_vocab_size",
                "d_model",
                "nhead",
                "d_qk",
                "d_v",
                "dim_feedforward",
                "num_encoder_layers",
                "num_decoder_layers",
                "activation",
                "norm_first",
                "final_norm",
                "layer_norm_eps",
                "position_dropout",
                "dropout",
                "attention_dropout",
                "activation_dropout",
                "max_len",
                "scale_embeddings",
                "projection_bias",
                "tie_embeddings",
                "pad_id",
                "start_id",
                "end_id",
                "unk_id"});
  EncoderDecoderConfig c;
  const auto size = [&](const char* key, int64_t fallback, int64_t low, int64_t high) {
    return j.integer_or(key, fallback, low, high);
  };
  const auto id = [&](const char* key, int64_t fallback) {
    return static_cast<int32_t>(j.integer_or(key, fallback, 0, limits.vocabulary));
  };
  c.layout = j.choice_or("layout", c.layout, {"hand_built", "torch", "rapt"});
  c.src_vocab_size = j.integer("src_vocab_size", 1, limits.vocabulary);
  c.tgt_vocab_size = j.integer("tgt_vocab_size", 1, limits.vocabulary);
  c.d_model = size("d_model", c.d_model, 1, limits.width);
  c.nhead = size("nhead", c.nhead, 1, limits.width);
  c.d_qk = size("d_qk", c.d_qk, 1, limits.width);
  c.d_v = size("d_v", c.d_v, 1, limits.width);
  c.dim_feedforward = size("dim_feedforward", c.dim_feedforward, 1, limits.width);
  c.num_encoder_layers = size("num_encoder_layers", c.num_encoder_layers, 0, limits.layers);
  c.num_decoder_layers = size("num_decoder_layers", c.num_decoder_layers, 0, limits.layers);
  c.activation = j.choice_or("activation", c.activation, {"relu", "gelu", "gelu_tanh"});
  c.norm_first = j.boolean_or("norm_first", c.norm_first);
  c.final_norm = j.boolean_or("final_norm", c.final_norm);
  c.layer_norm_eps = j.number_or("layer_norm_eps", c.layer_norm_eps, 0, 1);
  c.position_dropout = j.number_or("position_dropout", c.position_dropout, 0, 1);
  c.dropout = j.number_or("dropout", c.dropout, 0, 1);
  const auto share = [&](const char* key, std::optional<double>& value) {
    if (j.has(key)) value = j.number_or(key, 0, 0, 1);
  };
  share("attention_dropout", c.attention_dropout);
  share("activation_dropout", c.activation_dropout);
  c.max_len = size("max_len", c.max_len, 1, limits.positions);
  c.scale_embeddings = j.boolean_or("scale_embeddings", c.scale_embeddings);
  c.projection_bias = j.boolean_or("projection_bias", c.projection_bias);
  c.tie_embeddings =
      parse_tie_embeddings(j.choice_or("tie_embeddings", "none", {"none", "two", "three"}));
  c.pad_id = id("pad_id", c.pad_id);
  c.start_id = id("start_id", c.start_id);
  c.end_id = id("end_id", c.end_id);
  if (j.has("unk_id")) c.unk_id = id("unk_id", 0);
  with_error_kind(ErrorKind::model, path.string(), [&] { c.check(); });
  return c;
}

void load_state_dict(const nn::Module& module, const std::filesystem::path& file) {
  read_parameters(module, SafetensorsFile(file), layout("rapt"));
}

void load_weights(EncoderDecoder& model, const std::filesystem::path& path, const Layout& layout) {
  const SafetensorsFile file(path);
  with_error_kind(ErrorKind::model, path.string(), [&] { read_weights(model, file, layout); });
}

namespace {

// A model with the weights of a folder; `init` says how it is made for those of the file.
std::unique_ptr<EncoderDecoder> load(
    const std::filesystem::path& folder,
    const std::function<nn::Init(const SafetensorsFile& file)>& init) {
  const EncoderDecoderConfig config = read_config(folder);
  const std::filesystem::path path = folder / kWeightsFile;
  const SafetensorsFile file(path);
  return with_error_kind(ErrorKind::model, path.string(), [&] {
    int64_t elements = 0;
    for (const TensorInfo& tensor : file.tensors()) elements += tensor.numel;
    // Before memory is taken for what a configuration claims.
    RAPT_CHECK(config.count_parameters() <= elements,
               "expected the {} parameters that {} describes, found {} elements",
               config.count_parameters(), kConfigFile, elements);
    auto model = std::make_unique<EncoderDecoder>(config, init(file));
    read_weights(*model, file, layout(config.layout));
    return model;
  });
}

}  // namespace

std::unique_ptr<EncoderDecoder> load_encoder_decoder(const std::filesystem::path& folder,
                                                     std::optional<DType> dtype) {
  return load(folder, [&](const SafetensorsFile& file) -> nn::Init {
    RAPT_CHECK(!holds_int8(file),
               "the weights are in int8, which is for translating alone; use the folder that they "
               "were converted from");
    const auto tensors = file.tensors();
    const bool wide = std::all_of(tensors.begin(), tensors.end(), [](const TensorInfo& tensor) {
      return tensor.type == FileType::f64;
    });
    return {.rng = nullptr, .dtype = dtype.value_or(wide ? DType::f64 : DType::f32)};
  });
}

std::unique_ptr<EncoderDecoder> load_int8(const std::filesystem::path& folder) {
  return load(folder, [](const SafetensorsFile&) -> nn::Init {
    return {.rng = nullptr, .dtype = DType::f32, .matrices = false};
  });
}

bool holds_int8(const std::filesystem::path& folder) {
  expect_model(folder);
  return holds_int8(SafetensorsFile(folder / kWeightsFile));
}

std::vector<std::pair<std::string, Tensor>> by_file_name(const nn::Module& model,
                                                         const Layout& layout, const PartOf& part) {
  std::vector<std::string> order;
  const Named named = by_name(model, order);
  std::vector<std::pair<std::string, Tensor>> all;
  for (const LayoutEntry& entry : entries(layout, order))
    all.emplace_back(entry.file, stacked(values_of(entry, named, part)));
  return all;
}

void save_encoder_decoder(const EncoderDecoder& model, const std::filesystem::path& folder,
                          const SaveOptions& options) {
  EncoderDecoderConfig config = model.config();
  if (!options.layout.empty()) config.layout = options.layout;
  config.check();
  const Layout& names = layout(config.layout);
  std::vector<TensorSource> sources;
  if (options.int8) {
    sources = int8_sources(model, names);
  } else {
    for (auto& [name, tensor] :
         by_file_name(model, names, [](const NamedParameter& p) { return p.value(); }))
      sources.push_back(source_of(name, tensor));
  }
  for (const std::string_view name : names.positions)
    sources.push_back(source_of(std::string(name), model.positions()));
  write_safetensors(folder / kWeightsFile, sources, {{"format", "pt"}});
  write_file(folder / kConfigFile, config_text(config));
}

}  // namespace rapt::models
