// Model folders: config.json, model.safetensors and, where the model knows its words,
// source_vocabulary.txt and target_vocabulary.txt. docs/file-formats.md describes them.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rapt/models/encoder_decoder.h"
#include "rapt/models/layout.h"
#include "rapt/models/safetensors.h"

namespace rapt::models {

inline constexpr const char* kConfigFile = "config.json";
inline constexpr const char* kWeightsFile = "model.safetensors";
inline constexpr const char* kModelType = "rapt.EncoderDecoder";  // of config.json

// config.json as text, every field in it.
std::string config_text(const EncoderDecoderConfig& config);

// Throws Error (model) where a folder is no model's, for want of config.json, and names the folder
// in it that is one.
void expect_model(const std::filesystem::path& folder);

// Throws Error (model): as expect_model, a malformed file, another model_type, an unknown key
// (naming the nearest), a value that is out of range or contradicts another.
EncoderDecoderConfig read_config(const std::filesystem::path& folder);

// A model with the weights of its folder. `dtype`: that of the parameters; without it f64 where all
// weights of the file are F64, else f32. Throws Error (model) as read_config and SafetensorsFile
// do, for a tensor that is missing, of another shape or unknown to the model, for tied tensors that
// differ, and for a folder in int8.
std::unique_ptr<EncoderDecoder> load_encoder_decoder(const std::filesystem::path& folder,
                                                     std::optional<DType> dtype = {});

// A model frozen for inference in int8: of a folder in int8 (docs/int8.md), or of any other, whose
// matrices are quantised as they are read; both have the same bits. Throws Error (model) as above,
// and for scales that are missing or cannot be.
std::unique_ptr<EncoderDecoder> load_int8(const std::filesystem::path& folder);
bool holds_int8(const std::filesystem::path& folder);  // throws Error (model) where it is none

// Reads every parameter of a module from a file that names them as `layout` says. Throws Error for
// a tensor that is missing, of another shape or without a place in the module (and in `layout`),
// and for tied tensors that differ; what was read before stays.
void read_parameters(const nn::Module& module, const SafetensorsFile& file, const Layout& layout);

// The same for a file whose names are those of the module's visit(): a PyTorch state_dict, saved as
// safetensors, into the module of rapt::nn::torch that has its place.
void load_state_dict(const nn::Module& module, const std::filesystem::path& file);

// Reads the weights of a file, named as `layout` says, into a model.
void load_weights(EncoderDecoder& model, const std::filesystem::path& file, const Layout& layout);

struct SaveOptions {
  bool int8 = false;        // the matrices of products in int8, with scales
  std::string layout = {};  // names of the tensors, other than the model's own
};

// Writes config.json and model.safetensors into a folder that exists. Each file is whole or not
// there. Throws Error for a layout that the model cannot have, for numbers that are not finite in
// int8, and for a model that is in int8 already.
void save_encoder_decoder(const EncoderDecoder& model, const std::filesystem::path& folder,
                          const SaveOptions& options = {});

// Something that each parameter has (its value, its gradient), under the names that a file in
// `layout` gives it: parts are stacked as the file stacks them, tied parameters come under each
// name.
using PartOf = std::function<Tensor(const NamedParameter& parameter)>;
std::vector<std::pair<std::string, Tensor>> by_file_name(const nn::Module& model,
                                                         const Layout& layout, const PartOf& part);

}  // namespace rapt::models
