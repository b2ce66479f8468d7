// rapt inspect: what is in a model folder or a safetensors file.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/output.h"
#include "cli/program.h"
#include "rapt/base/file.h"
#include "rapt/models/checkpoint.h"
#include "rapt/models/safetensors.h"
#include "rapt/models/torch_module.h"
#include "rapt/tensor/shape.h"

namespace rapt::cli {
namespace {

struct Options {
  std::string path;
  bool json = false;
};

// What a path holds: a folder's configuration, and the tensors.
struct Contents {
  std::optional<std::string> config;  // of a folder
  // A tied parameter stands in the file under each of its names, buffers stand there too; the
  // configuration counts each parameter once.
  std::optional<int64_t> parameters;
  std::vector<models::TensorInfo> tensors;
  int64_t elements = 0, bytes = 0;
};

Contents read(const std::filesystem::path& path) {
  Contents contents;
  std::filesystem::path file = path;
  if (std::filesystem::is_directory(path)) {
    file = path / models::kWeightsFile;
    if (models::holds_torch_module(path)) {
      auto [config, parameters] = models::describe_torch_module(path);
      contents.config = std::move(config);
      contents.parameters = parameters;
    } else {
      const models::EncoderDecoderConfig config = models::read_config(path);
      contents.config = models::config_text(config);
      contents.parameters = config.count_parameters();
    }
    // A module without parameters needs no file for them.
    if (contents.parameters == 0 && !std::filesystem::exists(file)) return contents;
  }
  const models::SafetensorsFile opened(file);
  contents.tensors.assign(opened.tensors().begin(), opened.tensors().end());
  for (const models::TensorInfo& tensor : contents.tensors) {
    contents.elements += tensor.numel;
    contents.bytes += tensor.bytes;
  }
  return contents;
}

void print_json(const Contents& contents) {
  nlohmann::ordered_json j;
  if (contents.config) j["config"] = nlohmann::ordered_json::parse(*contents.config);
  j["tensors"] = nlohmann::ordered_json::array();
  for (const models::TensorInfo& tensor : contents.tensors) {
    j["tensors"].push_back({{"name", tensor.name},
                            {"dtype", models::file_type_name(tensor.type)},
                            {"shape", tensor.shape}});
  }
  j["elements"] = contents.elements;
  j["bytes"] = contents.bytes;
  if (contents.parameters) j["parameters"] = *contents.parameters;
  print(fmt::format("{}\n", j.dump(2)));
}

void print_text(const Contents& contents) {
  if (contents.config) print(fmt::format("{}\n", *contents.config));
  size_t width = 4;
  for (const models::TensorInfo& tensor : contents.tensors)
    width = std::max(width, tensor.name.size());
  for (const models::TensorInfo& tensor : contents.tensors) {
    print(fmt::format("{:<{}}  {:<5} ({})\n", tensor.name, width,
                      models::file_type_name(tensor.type), fmt::join(tensor.shape, ", ")));
  }
  print(fmt::format("\n{} tensors, {} elements, {:.1f} MiB\n", contents.tensors.size(),
                    contents.elements, static_cast<double>(contents.bytes) / 0x1p20));
  if (contents.parameters)
    print(fmt::format("{} parameters (tied ones once, without buffers)\n", *contents.parameters));
}

int inspect(const Options& options) {
  const Contents contents = read(options.path);
  if (options.json) {
    print_json(contents);
  } else {
    print_text(contents);
  }
  return 0;
}

}  // namespace

void add_inspect(CLI::App& app, Globals&, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("inspect",
                                      "Show the configuration and tensors of a folder with a model "
                                      "or an official module, or those of a safetensors file");
  verb->add_option("path", options->path, "A folder with config.json, or a .safetensors file")
      ->type_name("PATH")
      ->required();
  verb->add_flag("--json", options->json, "As JSON");
  verb->footer("Example:\n  rapt inspect demo/model --json");
  verb->callback([options, &action] { action = [options] { return inspect(*options); }; });
}

}  // namespace rapt::cli
